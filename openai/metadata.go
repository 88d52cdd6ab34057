package openai

import (
	"encoding/json"
	"math"
)

// Metadata is the "_metadata" of a reply: what Backstory put into the prompt.
type Metadata struct {
	Memory  *MemoryMetadata `json:"memory,omitempty"` // nil without a session
	RAG     RAGMetadata     `json:"rag"`
	Context ContextMetadata `json:"context"`
}

// MemoryMetadata tells what memory added.
type MemoryMetadata struct {
	SessionID       string `json:"sessionId"`
	HistoryMessages int    `json:"historyMessages"`
	// RecalledMessages are those of them that were quoted because the request
	// is about them.
	RecalledMessages int `json:"recalledMessages,omitempty"`
	// Saved is set, to false, only where the exchange could not be kept.
	Saved *bool `json:"saved,omitempty"`
}

// RAGMetadata tells what retrieval added. Where it wasn't active, only Enabled
// is written.
type RAGMetadata struct {
	Enabled      bool
	Degraded     string // the part of retrieval that failed; empty: none
	ResultsFound int    // before the budget cut them
	Query        string
	Sources      []Source // the chunks included, in prompt order
}

// Source is a chunk of a file that is included in the prompt.
type Source struct {
	FileID   string  `json:"fileId"`
	Filename string  `json:"filename"`
	Chunk    int     `json:"chunk"`
	Section  string  `json:"section,omitempty"`
	Page     int     `json:"page,omitempty"`
	Score    float64 `json:"score"`
}

// ContextMetadata measures the assembled context.
type ContextMetadata struct {
	TotalTokens      int  `json:"totalTokens"`
	IncludedMessages int  `json:"includedMessages"`
	IncludedChunks   int  `json:"includedChunks"`
	Truncated        bool `json:"truncated"`
}

// MarshalJSON writes {"enabled": false} alone where retrieval wasn't active.
func (m RAGMetadata) MarshalJSON() ([]byte, error) {
	if !m.Enabled {
		return []byte(`{"enabled":false}`), nil
	}
	sources := append([]Source{}, m.Sources...) // never null
	for i, s := range sources {
		if math.IsNaN(s.Score) || math.IsInf(s.Score, 0) { // JSON has neither
			sources[i].Score = 0
		}
	}
	return json.Marshal(struct {
		Enabled      bool     `json:"enabled"`
		Degraded     string   `json:"degraded,omitempty"`
		ResultsFound int      `json:"resultsFound"`
		Query        string   `json:"query"`
		Sources      []Source `json:"sources"`
	}{true, m.Degraded, m.ResultsFound, m.Query, sources})
}

// JSON is the value of "_metadata".
func (m *Metadata) JSON() []byte {
	b, err := json.Marshal(m)
	if err != nil { // can't be: the types above always marshal
		panic(err)
	}
	return b
}
