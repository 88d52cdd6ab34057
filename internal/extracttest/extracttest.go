// Package extracttest makes small documents of each kind for tests.
package extracttest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// Zip makes a ZIP archive of names and contents, in order.
func Zip(parts ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i+1 < len(parts); i += 2 {
		f, err := w.Create(parts[i])
		if err != nil {
			panic(err)
		}
		_, _ = f.Write([]byte(parts[i+1])) // to memory
	}
	_ = w.Close()
	return b.Bytes()
}

const (
	wordSpace = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`
	drawSpace = `xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" ` +
		`xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" ` +
		`xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	relSpace = `xmlns="http://schemas.openxmlformats.org/package/2006/relationships"`
	office   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
)

func relations(list ...string) string {
	var b strings.Builder
	b.WriteString(`<Relationships ` + relSpace + `>`)
	for i := 0; i+2 < len(list); i += 3 {
		fmt.Fprintf(&b, `<Relationship Id="%s" Type="%s%s" Target="%s"/>`, list[i], office, list[i+1], list[i+2])
	}
	return b.String() + `</Relationships>`
}

// DOCX makes a Word document of the body's XML, with styles for headings, a
// numbered list 1, a bulleted list 2, and a footnote.
func DOCX(body string) []byte {
	return Zip(
		"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels", relations("r1", "officeDocument", "word/document.xml"),
		"word/_rels/document.xml.rels", relations("r1", "styles", "styles.xml", "r2", "numbering", "numbering.xml",
			"r3", "footnotes", "footnotes.xml", "r4", "header", "header1.xml", "r5", "header", "header2.xml"),
		"word/document.xml", `<w:document `+wordSpace+`><w:body>`+body+`</w:body></w:document>`,
		"word/styles.xml", `<w:styles `+wordSpace+`>
			<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>
			<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>
			<w:style w:styleId="Own"><w:name w:val="My own"/><w:basedOn w:val="H2"/></w:style></w:styles>`,
		"word/numbering.xml", `<w:numbering `+wordSpace+`>
			<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
			<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
			<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="*"/></w:lvl></w:abstractNum>
			<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num></w:numbering>`,
		"word/footnotes.xml", `<w:footnotes `+wordSpace+`><w:footnote w:type="separator"><w:p><w:r><w:t>rule</w:t></w:r></w:p></w:footnote>
			<w:footnote><w:p><w:r><w:t>Weekends count.</w:t></w:r></w:p></w:footnote></w:footnotes>`,
		"word/header1.xml", `<w:hdr `+wordSpace+`>`+P("", "Confidential")+`</w:hdr>`,
		"word/header2.xml", `<w:hdr `+wordSpace+`>`+P("", "Confidential")+`</w:hdr>`,
	)
}

// P is a paragraph of Word. Its properties are XML.
func P(properties, text string) string {
	return `<w:p><w:pPr>` + properties + `</w:pPr><w:r><w:t xml:space="preserve">` + text + `</w:t></w:r></w:p>`
}

// Style is the property of a style.
func Style(id string) string { return `<w:pStyle w:val="` + id + `"/>` }

// Numbered is the property of an item of a list.
func Numbered(list, level int) string {
	return fmt.Sprintf(`<w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr>`, level, list)
}

// Table is a table of Word.
func Table(rows ...[]string) string {
	var b strings.Builder
	b.WriteString(`<w:tbl>`)
	for _, row := range rows {
		b.WriteString(`<w:tr>`)
		for _, cell := range row {
			b.WriteString(`<w:tc>` + P("", cell) + `</w:tc>`)
		}
		b.WriteString(`</w:tr>`)
	}
	return b.String() + `</w:tbl>`
}

// PPTX makes a presentation of slides, each a title and a text.
func PPTX(slides ...[2]string) []byte {
	parts := []string{"_rels/.rels", relations("r1", "officeDocument", "ppt/presentation.xml")}
	var ids strings.Builder
	var rels []string
	for i, s := range slides {
		fmt.Fprintf(&ids, `<p:sldId id="%d" r:id="s%d"/>`, 256+i, i)
		// Their names don't follow the order.
		file := fmt.Sprintf("slides/slide%d.xml", len(slides)-i)
		rels = append(rels, fmt.Sprintf("s%d", i), "slide", file)
		shape := func(kind, text string) string {
			return `<p:sp><p:nvSpPr><p:nvPr><p:ph type="` + kind + `"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:txBody></p:sp>`
		}
		parts = append(parts, "ppt/"+file, `<p:sld `+drawSpace+`><p:cSld><p:spTree>`+shape("title", s[0])+shape("body", s[1])+`</p:spTree></p:cSld></p:sld>`)
	}
	return Zip(append(parts,
		"ppt/presentation.xml", `<p:presentation `+drawSpace+`><p:sldIdLst>`+ids.String()+`</p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", relations(rels...))...)
}

// XLSX makes a workbook of one sheet.
func XLSX(sheet string, rows ...[]any) []byte {
	f := excelize.NewFile()
	defer f.Close()
	if err := f.SetSheetName("Sheet1", sheet); err != nil {
		panic(err)
	}
	for i, row := range rows {
		if err := f.SetSheetRow(sheet, fmt.Sprintf("A%d", i+1), &row); err != nil {
			panic(err)
		}
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

// ODF makes an OpenDocument of the body's XML.
func ODF(kind, body string) []byte {
	return Zip("mimetype", "application/vnd.oasis.opendocument."+kind,
		"content.xml", `<o:document-content xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
			xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"><o:body>`+body+`</o:body></o:document-content>`)
}

// EPUB makes a book of chapters in HTML.
func EPUB(chapters ...string) []byte {
	parts := []string{"mimetype", "application/epub+zip",
		"META-INF/container.xml", `<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>`}
	manifest, spine := "", ""
	for i, c := range chapters {
		name := fmt.Sprintf("c%%20%d.xhtml", len(chapters)-i)
		manifest += fmt.Sprintf(`<item id="i%d" href="%s"/>`, i, name)
		spine += fmt.Sprintf(`<itemref idref="i%d"/>`, i)
		parts = append(parts, "OEBPS/"+strings.ReplaceAll(name, "%20", " "), `<?xml version="1.0"?><html><body>`+c+`</body></html>`)
	}
	return Zip(append(parts, "OEBPS/book.opf", `<package><manifest>`+manifest+`</manifest><spine>`+spine+`</spine></package>`)...)
}

// PDF makes a PDF with a page for each text, whose lines are set one below the
// other.
func PDF(pages ...string) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	b.WriteString("%PDF-1.4\n")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [ %s] /Count %d >>", kids, len(pages)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for i, text := range pages {
		content := "BT /F1 12 Tf 72 760 Td 16 TL\n"
		for line := range strings.SplitSeq(text, "\n") {
			content += "(" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(line) + ") Tj T*\n"
		}
		if text == "" {
			content = "BT\n"
		}
		content += "ET"
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i))
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

// Encode encodes a text in an encoding of the WHATWG's index, or UTF-16 without
// a byte order mark.
func Encode(name, text string) []byte {
	e, err := htmlindex.Get(name)
	if err != nil {
		panic(err)
	}
	if name == "utf-16le" {
		e = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	}
	b, err := e.NewEncoder().Bytes([]byte(text))
	if err != nil {
		panic(err)
	}
	return b
}
