// Package knowledge makes the tenant's files searchable: it reads them, cuts
// them into passages, has those embedded, and finds passages for a question by
// words and by vectors, fused by rank.
//
// Files come in as bytes from the upload, questions as text from the chat
// request. Passages go out to store.Files, vectors and words to store.Searcher,
// texts to embed.Embedder; nothing else leaves the package, and nothing is
// kept in it.
package knowledge
