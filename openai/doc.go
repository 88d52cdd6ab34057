// Package openai knows the OpenAI wire format as far as Backstory has to: chat
// requests (what they say, where each part stands in the bytes, and how a new
// body is cut from the old one), replies and event streams, errors, file
// objects and lists. It does no I/O; bytes come in from the HTTP layer and go
// back to it.
package openai
