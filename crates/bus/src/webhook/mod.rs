//! Webhooks: events as signed HTTP requests.
