package store

import (
	"context"
	"io"
	"time"
)

// FileStatus is the state of a file, in the words of the OpenAI Files API.
type FileStatus string

// The states of a file. Only the chunks of processed files are found.
const (
	FileUploaded  FileStatus = "uploaded"
	FileProcessed FileStatus = "processed"
	FileError     FileStatus = "error"
)

// File is a document of a tenant.
type File struct {
	ID      string
	Name    string
	Purpose string
	Bytes   int64 // length of the original
	Digest  [32]byte
	Created time.Time // to the second, as the API shows it
	Status  FileStatus
	Reason  string // why Status is FileError
	// Model is the embedding model of the chunks' vectors; empty where they
	// have none.
	Model  string
	Chunks int // how many were added
}

// Chunk is a passage of a file.
type Chunk struct {
	N       int    // position in the file, from 0
	Text    string // as it is quoted in a prompt
	Terms   string // as it is indexed: normalised words, separated by spaces
	Section string // heading path, such as "Refunds > Deadlines"; may be empty
	Page    int    // from 1; 0 where the format has no pages
	Tokens  int    // of Text
	// Vector is the embedding, of unit length; nil where there is none.
	Vector []float32
}

// ChunkRef names a chunk of a tenant.
type ChunkRef struct {
	FileID string // not empty
	N      int
}

// FileQuery selects and orders a listing of files.
type FileQuery struct {
	Purpose string // empty: any
	After   string // the id of a file that the first one follows; empty: from the start
	Limit   int
	Order   Order // by time of creation, then in the order of CreateFile
}

// FileTotals is what the files of a tenant come to, whatever their state: of one that
// failed the original is kept.
type FileTotals struct {
	Files  int
	Bytes  int64 // of their originals
	Chunks int64 // that are kept
}

// Files keeps documents, their originals and their chunks, for a store that is a
// Searcher, too. A file's chunks
// become searchable together, when FinishFile sets it to FileProcessed.
type Files interface {
	Reembedder

	// CreateFile adds a file with its original, which it reads and writes piece
	// by piece; where that can't be read to its end, nothing is added. If the
	// tenant has a file of the same name, digest and purpose whose status isn't
	// FileError, that file and ErrExists are returned and nothing is added.
	CreateFile(ctx context.Context, scope Scope, f File, content io.Reader) (File, error)
	// AddChunks adds chunks to a file that is FileUploaded; ErrDeleted where
	// it is no longer there. Large lists are written in several steps, so
	// that other writers get their turn.
	AddChunks(ctx context.Context, scope Scope, id string, chunks []Chunk) error
	// FinishFile sets the status of a file; ErrDeleted where it is gone. With
	// FileError its chunks are removed and reason is kept.
	FinishFile(ctx context.Context, scope Scope, id string, status FileStatus, reason string) error
	// File returns a file, or ErrNotFound.
	File(ctx context.Context, scope Scope, id string) (File, error)
	// SameFile returns the file for which CreateFile would return ErrExists, or
	// ErrNotFound.
	SameFile(ctx context.Context, scope Scope, f File) (File, error)
	// FileTotals sums the files up, without looking at each.
	FileTotals(ctx context.Context, scope Scope) (FileTotals, error)
	// ListFiles returns at most q.Limit files; ErrNotFound where q.After
	// names none.
	ListFiles(ctx context.Context, scope Scope, q FileQuery) ([]File, error)
	// Content opens the original, or returns ErrNotFound. It is read from the
	// store piece by piece, as the caller reads it, and holds nothing of the
	// store's meanwhile: a caller may take its time. Reading ends with
	// ErrNotFound where the file is deleted before its end, and with ctx.
	Content(ctx context.Context, scope Scope, id string) (io.ReadCloser, error)
	// DeleteFile removes a file with its original, chunks and vectors, or
	// returns ErrNotFound. Nothing of it is found once DeleteFile returned.
	DeleteFile(ctx context.Context, scope Scope, id string) error
}
