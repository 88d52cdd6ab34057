package openai

import "strconv"

// The names of the headers that stand for the extension fields, behind the
// prefix "X-Backstory-", in canonical form.
const (
	headerSessionID    = "Session-Id"
	headerSaveToMemory = "Save-To-Memory"
	headerUseRAG       = "Use-Rag"
	headerRAGQuery     = "Rag-Query"
)

// ExtensionFromHeader reads the extension from the headers, for clients that
// can't add fields to the body; get returns the value of the one with the
// name. The error is one for the client.
func ExtensionFromHeader(get func(name string) (string, bool)) (Extension, error) {
	e := DefaultExtension
	e.SessionID, _ = get(headerSessionID)
	e.RAGQuery, _ = get(headerRAGQuery)
	for _, h := range []struct {
		name string
		to   *bool
	}{{headerSaveToMemory, &e.SaveToMemory}, {headerUseRAG, &e.UseRAG}} {
		value, ok := get(h.name)
		if !ok {
			continue
		}
		b, err := strconv.ParseBool(value)
		if err != nil {
			return e, Invalid("X-Backstory-"+h.name, "Invalid value for the header 'X-Backstory-%s': expected true or false.", h.name)
		}
		*h.to = b
	}
	return e, nil
}
