package redis

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

var fileFields = []string{"id", "name", "purpose", "bytes", "digest", "created", "status", "reason", "model", "chunks"}

func readFile(cmd *goredis.SliceCmd) (f store.File, ok bool, err error) {
	values, err := cmd.Result()
	if err != nil || len(values) != len(fileFields) || values[0] == nil {
		return f, false, err
	}
	var text [10]string
	for i := range text {
		text[i], _ = values[i].(string)
	}
	var n [3]int64
	for i, v := range []string{text[3], text[5], text[9]} {
		if n[i], err = strconv.ParseInt(v, 10, 64); err != nil {
			return f, false, errCorrupt
		}
	}
	f = store.File{
		ID: text[0], Name: text[1], Purpose: text[2], Bytes: n[0], Created: time.Unix(n[1], 0).UTC(),
		Status: store.FileStatus(text[6]), Reason: text[7], Model: text[8], Chunks: int(n[2]),
	}
	if copy(f.Digest[:], text[4]) != len(f.Digest) {
		return f, false, errCorrupt
	}
	return f, true, nil
}

// What createFileScript answers.
const (
	fileCreated = iota
	fileSame    // and the ID of the file that is the same
	fileTaken   // the ID is another file's, or that of one being removed
)

// FilesOff reports whether no file can be added.
func (s *Store) FilesOff() bool { return s.opts.NoFiles }

// CreateFile adds a file with its original.
func (s *Store) CreateFile(ctx context.Context, scope store.Scope, f store.File, content io.Reader) (store.File, error) {
	if s.opts.NoFiles {
		return store.File{}, store.ErrFilesOff
	}
	if err := s.enter(ctx, scope); err != nil {
		return store.File{}, err
	}
	defer s.end()
	f.Status = cmp.Or(f.Status, store.FileUploaded)
	f.Created = time.Unix(f.Created.Unix(), 0).UTC()
	f.Chunks = 0
	name := s.unique()
	up := &uploader{ctx: ctx, store: s, name: name, key: s.layout.file(blobKey, scope, f.ID) + ":" + name}
	other, err := s.createFile(ctx, scope, f, content, up)
	if err == nil && other == nil {
		return f, nil
	}
	if up.parts > 0 {
		s.client.Unlink(context.WithoutCancel(ctx), up.key) // it expires if this fails
	}
	if err != nil {
		return store.File{}, failure(ctx, err)
	}
	return *other, store.ErrExists
}

// createFile returns the file that is the same, if there is one.
func (s *Store) createFile(ctx context.Context, scope store.Scope, f store.File, content io.Reader, up *uploader) (*store.File, error) {
	same := sameness(f)
	other, err := s.client.HGet(ctx, s.layout.tenant(sameKey, scope), same).Result()
	if err != nil && err != goredis.Nil {
		return nil, err
	}
	// Ahead of what may be 100 MB: is there room?
	if err := s.run(ctx, readyScript, []string{s.layout.tenant(filesKey, scope)}).Err(); err != nil {
		return nil, err
	}
	for uploaded := false; ; {
		if other != "" {
			file, ok, err := readFile(s.client.HMGet(ctx, s.layout.file(fileKey, scope, other), fileFields...))
			if ok || err != nil {
				return &file, err
			}
			// It was deleted in between.
		}
		if !uploaded {
			if err := up.upload(content); err != nil {
				return nil, err
			}
			uploaded = true
		}
		if err := s.note(ctx, scope, f.ID); err != nil {
			return nil, err
		}
		reply, err := s.run(ctx, createFileScript, []string{
			s.layout.file(fileKey, scope, f.ID), s.layout.file(goneKey, scope, f.ID),
			s.layout.tenant(filesKey, scope), s.layout.tenant(sameKey, scope), s.layout.tenant(liveKey, scope),
			s.layout.tenant(darkKey, scope), s.layout.tenant(orderKey, scope), s.layout.file(blobKey, scope, f.ID), up.key,
			s.layout.tenant(totalsKey, scope),
		},
			f.ID, escape(f.ID), same, string(f.Status), f.Created.Unix(), up.name,
			"name", f.Name, "purpose", f.Purpose, "bytes", f.Bytes, "digest", f.Digest[:], "reason", f.Reason, "model", f.Model,
			"chunks", 0, "parts", up.parts).Slice()
		if err != nil {
			return nil, err
		}
		switch outcome, _ := reply[0].(int64); {
		case outcome == fileCreated:
			return nil, nil
		case outcome == fileSame && len(reply) == 2:
			other, _ = reply[1].(string)
		default:
			return nil, fmt.Errorf("the file ID %.100q is taken", f.ID)
		}
	}
}

// sameness is what two files have in common that are the same.
func sameness(f store.File) string {
	h := sha256.New()
	for _, s := range []string{f.Name, f.Purpose} {
		h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	h.Write(f.Digest[:])
	return string(h.Sum(nil))
}

// File returns a file.
func (s *Store) File(ctx context.Context, scope store.Scope, id string) (store.File, error) {
	if err := s.enter(ctx, scope); err != nil {
		return store.File{}, err
	}
	defer s.end()
	f, ok, err := readFile(s.client.HMGet(ctx, s.layout.file(fileKey, scope, id), fileFields...))
	switch {
	case err != nil:
		return store.File{}, failure(ctx, err)
	case !ok:
		return store.File{}, store.ErrNotFound
	}
	return f, nil
}

var _ store.Files = (*Store)(nil)
