package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
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
func (s *Store) CreateFile(ctx context.Context, scope store.Scope, f store.File, content []byte) (store.File, error) {
	f.Status = cmp.Or(f.Status, store.FileUploaded)
	f.Created = time.Unix(f.Created.Unix(), 0).UTC()
	f.Chunks = 0
	var id int64
	var found *store.File // the same file, if it is there
	err := s.writer.add(ctx, func(c *conn) error {
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
		if err := writeParts(c, id, content, 0); err != nil || len(content) > partBatch*partSize {
			return err
		}
		c.after(forget(scope, ""))
		return show(c, id)
	})
	if err == nil && found == nil && len(content) > partBatch*partSize {
		if found, err = s.writeRest(ctx, scope, f, id, content); err != nil || found != nil {
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
func (s *Store) writeRest(ctx context.Context, scope store.Scope, f store.File, id int64, content []byte) (found *store.File, err error) {
	for part := partBatch; part*partSize < len(content); part += partBatch {
		err := s.writer.add(ctx, func(c *conn) error { return writeParts(c, id, content, part) })
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

// sameFile returns the file that makes f a duplicate, or nil.
func sameFile(c *conn, tenant int64, f store.File) (*store.File, error) {
	_, same, err := scanFile(c.row(`SELECT `+fileColumns+` FROM files
		WHERE tenant = ? AND digest = ? AND title = ? AND purpose = ? AND status <> ? AND hidden = 0`,
		tenant, f.Digest[:], f.Name, f.Purpose, store.FileError).Scan)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &same, nil
}

// writeParts writes partBatch parts of the content, from the one given.
func writeParts(c *conn, id int64, content []byte, part int) error {
	for end := part + partBatch; part < end && part*partSize < len(content); part++ {
		piece := content[part*partSize : min((part+1)*partSize, len(content))]
		if err := c.exec(`INSERT INTO originals (file, part, content) VALUES (?, ?, ?)`, id, part, piece); err != nil {
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

// Content returns the original.
func (s *Store) Content(ctx context.Context, scope store.Scope, id string) ([]byte, error) {
	t, err := s.tenant(ctx, scope)
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, `SELECT o.content FROM files f LEFT JOIN originals o ON o.file = f.id
		WHERE f.tenant = ? AND f.name = ? AND f.hidden = 0 ORDER BY o.part`, t, id)
	if err != nil {
		return nil, err
	}
	var content []byte
	found := false
	err = each(ctx, rows, func() (bool, error) {
		found = true
		var piece sql.RawBytes
		err := rows.Scan(&piece)
		content = append(content, piece...)
		return true, err
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return content, err
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
		s.writer.eraseSoon()
		s.wordsDeleted()
	}
	if err != nil || purged {
		return err
	}
	return s.finishPurge(ctx, func(c *conn) (bool, error) { return purgeFile(c, file) })
}

var _ store.Files = (*Store)(nil)
