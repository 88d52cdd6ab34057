package gateway

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"sync"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// totals sums up a tenant's files, whatever their state: the originals of
// failed ones are kept too. same says whether one of them is the file f.
func (fa *filesAPI) totals(ctx context.Context, scope store.Scope, f *store.File) (n int, size int64, same bool, err error) {
	const page = 1000
	for after := ""; ; {
		list, err := fa.shared.ListFiles(ctx, scope, store.FileQuery{After: after, Limit: page})
		if err != nil {
			return 0, 0, false, &unavailable{err}
		}
		for i := range list {
			n++
			size += list[i].Bytes
			same = same || f != nil && list[i].Status != store.FileError &&
				list[i].Name == f.Name && list[i].Digest == f.Digest && list[i].Purpose == f.Purpose
		}
		if len(list) < page {
			return n, size, same, nil
		}
		after = list[page-1].ID
	}
}

// uploadLocks has one upload of a tenant at a time be checked and created, so
// that two don't both take the last place. Tenants may share one.
var uploadLocks [64]sync.Mutex

var uploadSeed = maphash.MakeSeed()

// create adds a file as far as the plan has room for it. Proxies that share
// a store may each let one in at the same time.
func (fa *filesAPI) create(ctx context.Context, who caller, f store.File, content io.Reader) (store.File, error) {
	if who.plan.Files == 0 && who.plan.Storage == 0 {
		return fa.shared.CreateFile(ctx, who.scope, f, content)
	}
	lock := &uploadLocks[maphash.String(uploadSeed, who.scope.Tenant)%uint64(len(uploadLocks))]
	lock.Lock()
	defer lock.Unlock()
	n, size, same, err := fa.totals(ctx, who.scope, &f)
	if err != nil {
		return store.File{}, err
	}
	switch p := &who.plan; {
	case same: // it isn't added again
	case p.Files > 0 && n >= p.Files:
		return store.File{}, fullError("file_limit_exceeded",
			"Your plan allows no more files: you have %d of %d. Please delete old ones first.", n, p.Files)
	case p.Storage > 0 && size+f.Bytes > p.Storage:
		return store.File{}, fullError("storage_limit_exceeded",
			"You have exceeded your file storage quota: your files have %s, this one has %s, and your plan allows %s. Please delete old files or upload a smaller one.",
			sizeText(size), sizeText(f.Bytes), sizeText(p.Storage))
	}
	return fa.shared.CreateFile(ctx, who.scope, f, content)
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
