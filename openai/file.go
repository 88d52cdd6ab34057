package openai

// File is a file object of the Files API.
type File struct {
	ID            string `json:"id"`
	Object        string `json:"object"` // "file"
	Bytes         int64  `json:"bytes"`
	CreatedAt     int64  `json:"created_at"` // unix seconds
	Filename      string `json:"filename"`
	Purpose       string `json:"purpose"`
	Status        string `json:"status"`                   // uploaded, processed or error
	StatusDetails string `json:"status_details,omitempty"` // why the status is error

	// Metadata is ours: it is part of the reply to an upload only.
	Metadata *FileMetadata `json:"_metadata,omitempty"`
}

// FileMetadata tells how an uploaded file was read.
type FileMetadata struct {
	Type   string `json:"type"`   // such as "PDF"
	Reader string `json:"reader"` // such as "pdftotext"
}

// List is a page of objects.
type List[T any] struct {
	Object  string  `json:"object"` // "list"
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"` // null where the page is empty
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// NewList makes a page of at most limit objects from up to one more, which
// tells that there are more.
func NewList[T any](objects []T, limit int, id func(T) string) List[T] {
	l := List[T]{Object: "list", Data: objects}
	if len(objects) > limit {
		l.Data, l.HasMore = objects[:limit], true
	}
	if n := len(l.Data); n > 0 {
		first, last := id(l.Data[0]), id(l.Data[n-1])
		l.FirstID, l.LastID = &first, &last
	} else {
		l.Data = []T{} // not null
	}
	return l
}

// Deleted says that an object is gone.
type Deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// SearchResults is a page of what a search found, in the shape of the vector
// store search.
type SearchResults struct {
	Object      string         `json:"object"` // "vector_store.search_results.page"
	SearchQuery string         `json:"search_query"`
	Data        []SearchResult `json:"data"`
	HasMore     bool           `json:"has_more"`
	NextPage    *string        `json:"next_page"`
	// Degraded names a part of the search that failed; ours.
	Degraded string `json:"degraded,omitempty"`
}

// SearchResult is one chunk of a file. Chunk, Section and Page are ours.
type SearchResult struct {
	FileID     string         `json:"file_id"`
	Filename   string         `json:"filename"`
	Score      float64        `json:"score"`
	Attributes map[string]any `json:"attributes"`
	Content    []Text         `json:"content"`
	Chunk      int            `json:"chunk"`
	Section    string         `json:"section,omitempty"`
	Page       int            `json:"page,omitempty"`
}

// Text is a content part of text.
type Text struct {
	Type string `json:"type"` // "text"
	Text string `json:"text"`
}
