// Package demo is a small model router that speaks the OpenAI format, so that
// Backstory runs, and can be shown and tested, with no account and no network.
//
// There is no model in it. It answers from what the request holds and from
// nothing else: it says how many messages, quotes and chunks of files it was given,
// and repeats the one sentence among them that fits the question best. So a
// person can see what memory and files add to a prompt. The same request always gets
// the same reply.
//
// It serves POST …/chat/completions, POST …/embeddings, GET …/models and GET
// …/models/{id} below any base path. Every request needs an Authorization of
// "Bearer" and any key but [InvalidKey], which is refused. Any model name is
// answered; [Router] documents those that are listed. Like the providers, it
// refuses a prompt that is longer than the model's context, a tool message
// without its call, and a call without its results.
//
// If tools are given and the last user message holds the name of one, the reply
// calls it. A response_format of json_object or json_schema gets a small object
// of that form. The field stop is ignored.
//
// # Directives
//
// The user's own words in the last user message may ask for a failure, or for a
// reply of a certain kind. Several may stand together:
//
//	demo:error 429         answer with that status (400 to 599; default 500)
//	demo:break             break the connection off in the middle of the reply
//	demo:error-midstream   an error event in the middle of the stream, which
//	                       ends there; unstreamed, as demo:error 502
//	demo:comment           comments (": OPENROUTER PROCESSING") before the stream
//	demo:slow 50ms         wait before each word (default 50ms)
//	demo:words 500         a reply of that many words (default 100)
package demo
