//! What is below `deploy/` names things that exist.

use crate::Check;

pub(crate) const CHECKS: [(&str, Check); 0] = [];
