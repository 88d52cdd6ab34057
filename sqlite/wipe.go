package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
)

// To keep its trees in balance, SQLite moves rows from one page to another. It
// overwrites rows that are deleted, but not the copies that moved ones leave in
// the free space of a page: of 6,400 short messages that were deleted, some were
// still there.

// wipeBatch is how many pages a step reads, and wipes at most.
const wipeBatch = 256

// The first byte of a page with rows, or with the keys of an index. Pages of other
// kinds begin with the number of another page, or with at most 5.
const (
	indexLeaf = 10
	tableLeaf = 13
)

// maxWiped is how many pages a file may have for a page's kind to be known: the
// first byte of larger numbers of pages is that of a leaf. It is 640 GB.
const maxWiped = indexLeaf << 24

// freeSpace returns the free space between the rows of a page and their directory;
// nothing for a page without rows. See "B-tree Pages" in
// https://sqlite.org/fileformat2.html.
func freeSpace(number int64, page []byte) []byte {
	header := 0
	if number == 1 {
		header = 100 // the file's
	}
	if len(page) < header+8 || page[header] != indexLeaf && page[header] != tableLeaf {
		return nil
	}
	from := header + 8 + 2*int(binary.BigEndian.Uint16(page[header+3:]))
	to := int(binary.BigEndian.Uint16(page[header+5:]))
	if to == 0 {
		to = 1 << 16
	}
	if from >= to || to > len(page) {
		return nil
	}
	return page[from:to]
}

// unwiped reports whether something stands in a page's free space.
func unwiped(number int64, page []byte) bool {
	return len(bytes.Trim(freeSpace(number, page), "\x00")) > 0
}

const (
	readPage  = `SELECT data FROM sqlite_dbpage WHERE pgno = ?`
	writePage = `UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?`
)

// readPages reads the pages from one number to another, as far as they are there.
const readPages = `WITH RECURSIVE n (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
	SELECT pgno, data FROM n CROSS JOIN sqlite_dbpage ON pgno = i`

// wipePages clears the free space of all pages. It reads some at a time, so that
// it keeps nobody from writing, and gives those that have something to clear to
// the writer, which looks again.
func (s *Store) wipePages(ctx context.Context) error {
	var count int64
	if err := s.row(ctx, `PRAGMA page_count`).Scan(&count); err != nil || count >= maxWiped {
		return err
	}
	for from := int64(1); from <= count; from += wipeBatch {
		rows, err := s.query(ctx, readPages, from, min(from+wipeBatch-1, count))
		if err != nil {
			return err
		}
		var found []int64
		err = each(ctx, rows, func() (bool, error) {
			var number int64
			var page sql.RawBytes
			err := rows.Scan(&number, &page)
			if unwiped(number, page) {
				found = append(found, number)
			}
			return true, err
		})
		if err == nil && len(found) > 0 {
			err = s.writer.step(ctx, func(c *conn) error { return wipe(c, found) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wipe clears the free space of pages.
func wipe(c *conn, numbers []int64) error {
	var count int64 // it may have shrunk
	if err := c.row(`PRAGMA page_count`).Scan(&count); err != nil {
		return err
	}
	for _, number := range numbers {
		if number > count {
			continue
		}
		var page []byte
		if err := c.row(readPage, number).Scan(&page); err != nil {
			return err
		}
		if !unwiped(number, page) {
			continue
		}
		clear(freeSpace(number, page))
		if err := c.exec(writePage, page, number); err != nil {
			return err
		}
	}
	return nil
}
