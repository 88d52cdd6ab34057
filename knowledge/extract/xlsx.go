package extract

import (
	"bytes"
	"errors"
	"strings"

	"github.com/xuri/excelize/v2"
)

// readXLSX reads an Excel workbook: each sheet under its name, row by row, with
// numbers and dates as they are shown, then its comments.
func readXLSX(o *output, a *archive, content []byte) error {
	limit := min(max(maxUnpacked, int64(len(content))*maxRatio), mostUnpacked)
	f, err := excelize.OpenReader(bytes.NewReader(content), excelize.Options{UnzipSizeLimit: limit, UnzipXMLSizeLimit: limit})
	switch {
	case errors.Is(err, excelize.ErrWorkbookFileFormat):
		return unreadable("the workbook is broken or protected by a password")
	case err != nil:
		return err
	}
	defer f.Close()
	parts := sheetParts(a)
	return o.readEach(f.GetSheetList(), func(sheet string) error {
		if part := parts[sheet]; part != "" && !a.once(part) {
			return nil
		}
		return readSheet(o, f, sheet)
	})
}

// sheetParts are the parts of a workbook's sheets, by name.
func sheetParts(a *archive) map[string]string {
	main := first(a.relations("").ofType("officeDocument"), "xl/workbook.xml")
	rels, parts := a.relations(main), map[string]string{}
	_ = a.xml(main, func(x *xmlReader, _ element) error { // excelize tells what is wrong with it
		return x.find("sheet", func(e element) error {
			parts[e.attr("name")] = rels.target(e.attr("id"))
			return x.skip()
		})
	})
	return parts
}

func readSheet(o *output, f *excelize.File, sheet string) error {
	if err := o.sheet(sheet); err != nil {
		return err
	}
	rows, err := f.Rows(sheet)
	if err == nil {
		err = readRows(o, rows)
	}
	if err != nil {
		return err
	}
	comments, err := f.GetComments(sheet)
	if err != nil {
		return nil // the rows are read: what is broken beside them is left out
	}
	for _, c := range comments {
		text := c.Text
		for _, run := range c.Paragraph {
			text += run.Text
		}
		// What Excel puts ahead of it for its own older versions.
		if note, own, found := strings.Cut(text, "Comment:\n"); found && strings.HasPrefix(note, "[Threaded comment]") {
			text = strings.TrimSpace(own)
		}
		if err := o.paragraph("Comment on " + c.Cell + ": " + text); err != nil {
			return err
		}
	}
	return nil
}

func readRows(o *output, rows *excelize.Rows) error {
	defer rows.Close()
	begins := true // after nothing or an empty row, a table begins
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		before := o.bytes
		if err := o.row(begins, cells); err != nil {
			return err
		}
		begins = o.bytes == before
	}
	return rows.Error()
}
