// Package knowledge makes a tenant's files searchable: it reads them, cuts them
// into chunks, has those embedded, and finds the chunks that answer a question,
// by words and by vectors, fused by rank.
//
// Files come in as bytes from the upload, questions as text from the chat
// request. Chunks go out to store.Files, vectors and words to store.Searcher,
// texts to embed.Embedder; nothing else leaves the package, and nothing is
// kept in it.
package knowledge
