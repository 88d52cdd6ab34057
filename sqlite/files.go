package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

const fileColumns = `id, name, title, purpose, bytes, digest, created, status, reason, model, chunks`

// scanFile reads fileColumns; it returns the file's id in the database too.
func scanFile(scan func(...any) error) (id int64, f store.File, err error) {
	var digest []byte
	var created int64
	err = scan(&id, &f.ID, &f.Name, &f.Purpose, &f.Bytes, &digest, &created, &f.Status, &f.Reason, &f.Model, &f.Chunks)
	if err != nil {
		return 0, store.File{}, err
	}
	if copy(f.Digest[:], digest) != len(f.Digest) {
		return 0, store.File{}, errors.New("sqlite: a file's digest is corrupt")
	}
	f.Created = time.Unix(created, 0).UTC()
	return id, f, nil
}

// CreateFile adds a file with its original. A large one is written in steps,
// and nobody sees it until the last.
func (s *Store) CreateFile(ctx context.Context, scope store.Scope, f store.File, content io.Reader) (store.File, error) {
	f.Status = cmp.Or(f.Status, store.FileUploaded)
	f.Created = time.Unix(f.Created.Unix(), 0).UTC()
	f.Chunks = 0
	original := parts{from: content}
	first, err := original.next()
	if err != nil {
		return store.File{}, err
	}
	var id int64
	var found *store.File // the same file, if it is there
	err = s.writer.add(ctx, func(c *conn) error {
		t, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		if found, err = sameFile(c, t, f); found != nil || err != nil {
			return err
		}
		err = c.row(`INSERT INTO files (tenant, name, title, purpose, bytes, digest, created, status, reason, model, chunks, hidden, dark)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, 1) RETURNING id`,
			t, f.ID, f.Name, f.Purpose, f.Bytes, f.Digest[:], f.Created.Unix(), f.Status, f.Reason, f.Model).Scan(&id)
		if err != nil {
			return err
		}
		if err := writeParts(c, id, 0, first); err != nil || !original.ended {
			return err
		}
		c.after(forget(scope, ""))
		return show(c, id)
	})
	if err == nil && found == nil && !original.ended {
		if found, err = s.writeRest(ctx, scope, f, id, &original); err != nil || found != nil {
			err = errors.Join(err, s.finishPurge(ctx, func(c *conn) (bool, error) { return purgeFile(c, id) }))
		}
	}
	switch {
	case err != nil:
		return store.File{}, err
	case found != nil:
		return *found, store.ErrExists
	}
	return f, nil
}

// writeRest writes what the first step of CreateFile had no room for, and shows
// the file; unless somebody else has brought the same one meanwhile, which it
// returns.
func (s *Store) writeRest(ctx context.Context, scope store.Scope, f store.File, id int64, original *parts) (found *store.File, err error) {
	for n := partBatch; !original.ended; n += partBatch {
		list, err := original.next()
		if err != nil {
			return nil, err
		}
		err = s.writer.add(ctx, func(c *conn) error { return writeParts(c, id, n, list) })
		if err != nil {
			return nil, err
		}
	}
	err = s.writer.write(ctx, 1, func(c *conn) error {
		t, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		if found, err = sameFile(c, t, f); found != nil || err != nil {
			return err
		}
		c.after(forget(scope, ""))
		return show(c, id)
	})
	return found, err
}

const sameQuery = `SELECT ` + fileColumns + ` FROM files
	WHERE tenant = ? AND digest = ? AND title = ? AND purpose = ? AND status <> ? AND hidden = 0`

// sameFile returns the file that makes f a duplicate, or nil.
func sameFile(c *conn, tenant int64, f store.File) (*store.File, error) {
	_, same, err := scanFile(c.row(sameQuery, tenant, f.Digest[:], f.Name, f.Purpose, store.FileError).Scan)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &same, nil
}

// parts cuts an original up.
type parts struct {
	from  io.Reader
	held  [partBatch]bytes.Buffer
	ended bool
}

// next returns the next partBatch parts, or those that are left. They are good
// until it is called again.
func (p *parts) next() (list [][]byte, err error) {
	for i := range p.held {
		part := &p.held[i]
		part.Reset()
		_, err := io.CopyN(part, p.from, partSize)
		if p.ended = errors.Is(err, io.EOF); err != nil && !p.ended {
			return nil, fmt.Errorf("read the original: %w", err)
		}
		if part.Len() > 0 {
			list = append(list, part.Bytes())
		}
		if p.ended {
			break
		}
	}
	return list, nil
}

// writeParts writes parts of an original, from the one with the given number on.
func writeParts(c *conn, id int64, n int, list [][]byte) error {
	for i, part := range list {
		if err := c.exec(`INSERT INTO originals (file, part, content) VALUES (?, ?, ?)`, id, n+i, part); err != nil {
			return err
		}
	}
	return nil
}

func show(c *conn, id int64) error {
	return c.exec(`UPDATE files SET hidden = 0, dark = (status <> 'processed') WHERE id = ?`, id)
}

// File returns a file.
func (s *Store) File(ctx context.Context, scope store.Scope, id string) (store.File, error) {
	_, f, err := s.file(ctx, scope, id)
	return f, err
}

func (s *Store) file(ctx context.Context, scope store.Scope, id string) (int64, store.File, error) {
	t, err := s.tenant(ctx, scope)
	if err != nil {
		return 0, store.File{}, err
	}
	return scanFile(s.row(ctx, `SELECT `+fileColumns+` FROM files WHERE tenant = ? AND name = ? AND hidden = 0`, t, id).Scan)
}

// Content opens the original.
func (s *Store) Content(ctx context.Context, scope store.Scope, id string) (io.ReadCloser, error) {
	file, _, err := s.file(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	return &original{ctx: ctx, store: s, file: file}, nil
}

// original reads an original, a part at a time.
type original struct {
	ctx   context.Context
	store *Store
	file  int64
	part  int
	held  []byte // of the last part that was read
	ended bool
}

func (o *original) Read(p []byte) (int, error) {
	for len(o.held) == 0 && !o.ended {
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	if len(o.held) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.held)
	o.held = o.held[n:]
	return n, nil
}

// next reads the next part. Behind the last one there is none, and neither is there
// of a file that is deleted: the file's own row tells which.
func (o *original) next() error {
	err := o.store.row(o.ctx, `SELECT o.content FROM files f LEFT JOIN originals o ON o.file = f.id AND o.part = ?
		WHERE f.id = ? AND f.hidden = 0`, o.part, o.file).Scan(&o.held)
	o.ended = err == nil && len(o.held) == 0
	o.part++
	return err
}

func (*original) Close() error { return nil }

// SameFile returns the file that makes f a duplicate.
func (s *Store) SameFile(ctx context.Context, scope store.Scope, f store.File) (store.File, error) {
	t, err := s.tenant(ctx, scope)
	if err != nil {
		return store.File{}, err
	}
	_, same, err := scanFile(s.row(ctx, sameQuery, t, f.Digest[:], f.Name, f.Purpose, store.FileError).Scan)
	return same, err
}

// FileTotals sums the tenant's files up: 10,000 of them take some milliseconds.
func (s *Store) FileTotals(ctx context.Context, scope store.Scope) (sum store.FileTotals, err error) {
	t, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) {
		return sum, nil
	}
	if err != nil {
		return sum, err
	}
	err = s.row(ctx, `SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(CASE status WHEN 'error' THEN 0 ELSE chunks END), 0)
		FROM files WHERE tenant = ? AND hidden = 0`, t).Scan(&sum.Files, &sum.Bytes, &sum.Chunks)
	return sum, err
}

// ListFiles returns files of the tenant.
func (s *Store) ListFiles(ctx context.Context, scope store.Scope, q store.FileQuery) ([]store.File, error) {
	t, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) && q.After == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	beyond, direction, created, id := ">", "", int64(math.MinInt64), int64(0)
	if q.Order == store.Descending {
		beyond, direction, created = "<", " DESC", math.MaxInt64
	}
	if q.After != "" {
		after, f, err := s.file(ctx, scope, q.After)
		if err != nil {
			return nil, err
		}
		created, id = f.Created.Unix(), after
	}
	rows, err := s.query(ctx, fmt.Sprintf(`SELECT `+fileColumns+` FROM files
		WHERE tenant = ?1 AND hidden = 0 AND (created, id) %[1]s (?2, ?3) AND (?4 = '' OR purpose = ?4)
		ORDER BY created%[2]s, id%[2]s LIMIT ?5`, beyond, direction),
		t, created, id, q.Purpose, max(q.Limit, 0))
	if err != nil {
		return nil, err
	}
	var list []store.File
	err = each(ctx, rows, func() (bool, error) {
		_, f, err := scanFile(rows.Scan)
		list = append(list, f)
		return true, err
	})
	return list, err
}

// DeleteFile removes a file: at once from everyone's sight, and then step by
// step from the disk.
func (s *Store) DeleteFile(ctx context.Context, scope store.Scope, id string) error {
	var file int64
	var purged bool
	err := s.writer.step(ctx, func(c *conn) error {
		t, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		err = c.row(`UPDATE files SET hidden = 1, dark = 1 WHERE tenant = ? AND name = ? AND hidden = 0 RETURNING id`, t, id).Scan(&file)
		if err != nil {
			return err
		}
		c.after(forget(scope, ""))
		purged, err = purgeFile(c, file)
		return err
	})
	if err == nil && purged {
		s.eraseSoon()
	}
	if err != nil || purged {
		return err
	}
	return s.finishPurge(ctx, func(c *conn) (bool, error) { return purgeFile(c, file) })
}

var _ store.Files = (*Store)(nil)
