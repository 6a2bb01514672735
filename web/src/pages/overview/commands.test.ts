import { describe, expect, it } from 'vitest';
import { commands, quoted } from './commands';

describe('commands', () => {
  it('name the server that shows them', () => {
    const { cli, curl } = commands('http://127.0.0.1:7400', '/', false);
    expect(cli.enqueue).toBe("redrive enqueue --url http://127.0.0.1:7400 hello 'Hello, world'");
    expect(cli.work).toBe('redrive work --url http://127.0.0.1:7400 hello -- cat');
    expect(curl.enqueue).toContain('curl -s http://127.0.0.1:7400/v1/queues/hello/messages ');
  });

  it('go below the base', () => {
    const { cli, curl } = commands('https://queue.example.com', '/redrive/', false);
    for (const command of Object.values(cli)) expect(command).toContain(' --url https://queue.example.com/redrive hello');
    expect(curl.enqueue).toContain('https://queue.example.com/redrive/v1/queues');
  });

  it('take the key from the environment, never onto the command line', () => {
    const { cli, curl } = commands('http://127.0.0.1:7400', '/', true);
    expect(curl.enqueue).toContain('-H "authorization: Bearer $REDRIVE_TOKEN"');
    expect(cli.enqueue).not.toContain('TOKEN');
  });
});

describe('quoted', () => {
  it('leaves nothing for the shell to read', () => {
    expect(quoted('a/b:c')).toBe('a/b:c');
    expect(quoted("it's $HOME")).toBe("'it'\\''s $HOME'");
  });
});
