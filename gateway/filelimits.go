package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"sync"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// chunkBytes is what a chunk counts besides its vector, bytes: about what the text
// of one takes with its words and their index. In SQLite, 6,353 chunks of English
// of 300 tokens took 2.1 KB each.
const chunkBytes = 2 << 10

// chunksSize is what so many chunks count, with their vectors.
func (fa *filesAPI) chunksSize(n int64) int64 {
	each := int64(chunkBytes)
	if e := fa.options.Embedder; e != nil {
		each += 4 * int64(e.Dimensions())
	}
	return n * each
}

// used is how many files a tenant has, and what is stored of them: the originals,
// also of failed ones, and the chunks.
func (fa *filesAPI) used(ctx context.Context, scope store.Scope) (n int, size int64, err error) {
	sum, err := fa.shared.FileTotals(ctx, scope)
	if err != nil {
		return 0, 0, &unavailable{err}
	}
	return sum.Files, sum.Bytes + fa.chunksSize(sum.Chunks), nil
}

// uploadLocks has one upload of a tenant at a time be checked and created, so
// that two don't both take the last place. Tenants may share one.
var uploadLocks [64]sync.Mutex

var uploadSeed = maphash.MakeSeed()

// create adds a file that comes to so many chunks, as far as the plan has room for
// it. Proxies that share a store may each let one in at the same time.
func (fa *filesAPI) create(ctx context.Context, who caller, f store.File, chunks int, content io.Reader) (store.File, error) {
	if who.plan.Files == 0 && who.plan.Storage == 0 {
		return fa.shared.CreateFile(ctx, who.scope, f, content)
	}
	lock := &uploadLocks[maphash.String(uploadSeed, who.scope.Tenant)%uint64(len(uploadLocks))]
	lock.Lock()
	defer lock.Unlock()
	n, size, err := fa.used(ctx, who.scope)
	if err != nil {
		return store.File{}, err
	}
	own := f.Bytes + fa.chunksSize(int64(chunks))
	var full error
	switch p := &who.plan; {
	case p.Files > 0 && n >= p.Files:
		full = fullError("file_limit_exceeded",
			"Your plan allows no more files: you have %d of %d. Please delete old ones first.", n, p.Files)
	case p.Storage > 0 && size+own > p.Storage:
		full = storageError(size, own, p.Storage)
	}
	if full == nil {
		return fa.shared.CreateFile(ctx, who.scope, f, content)
	}
	same, err := fa.shared.SameFile(ctx, who.scope, f)
	switch {
	case err == nil: // it isn't added again
		return same, store.ErrExists
	case !errors.Is(err, store.ErrNotFound):
		return store.File{}, &unavailable{err}
	}
	return store.File{}, full
}

// checkChunks refuses the chunks of a file, which was created before it was known
// how many there are, where the plan has no room for them.
func (fa *filesAPI) checkChunks(ctx context.Context, who caller, chunks int) error {
	if who.plan.Storage == 0 {
		return nil
	}
	_, size, err := fa.used(ctx, who.scope)
	if err != nil {
		return err
	}
	if own := fa.chunksSize(int64(chunks)); size+own > who.plan.Storage {
		return storageError(size, own, who.plan.Storage)
	}
	return nil
}

func storageError(size, own, most int64) error {
	return fullError("storage_limit_exceeded",
		"You have exceeded your file storage quota: your files take %s, this one %s with its chunks and their vectors, and your plan allows %s. Please delete old files or upload a smaller one.",
		sizeText(size), sizeText(own), sizeText(most))
}

// fullError is a 400, as OpenAI answers an upload beyond an organization's
// quota.
func fullError(code, format string, args ...any) error {
	return &openai.Error{
		Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: "file", Code: code,
		Message: fmt.Sprintf(format, args...),
	}
}

// largest is the largest file that a caller may upload.
func (fa *filesAPI) largest(who caller) int64 {
	if who.plan.FileSize > 0 {
		return min(who.plan.FileSize, fa.options.MaxFile)
	}
	return fa.options.MaxFile
}
