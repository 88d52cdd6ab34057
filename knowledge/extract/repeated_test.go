package extract_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/backstory-proxy/backstory/internal/extracttest"
	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// related makes the relations of a part, each a type and a target.
func related(list ...string) string {
	var b strings.Builder
	b.WriteString(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	for i := 0; i < len(list); i += 2 {
		fmt.Fprintf(&b, `<Relationship Id="r%d" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`, i/2, list[i], list[i+1])
	}
	return b.String() + `</Relationships>`
}

func TestAPartIsReadOnceHoweverOftenItIsReferredTo(t *testing.T) {
	const times = 50
	repeat := func(format string) string {
		var b strings.Builder
		for i := range times {
			fmt.Fprintf(&b, strings.ReplaceAll(format, "#", "%[1]d"), i)
		}
		return b.String()
	}
	slide := `<s xmlns:a="a"><a:p><a:r><a:t>zanzibar</a:t></a:r></a:p></s>`
	parts := func(kind, target string) (list []string) {
		for range times {
			list = append(list, kind, target)
		}
		return list
	}
	var slides, own []string // the slides have parts of their own
	for i := range times {
		own = append(own, "slide", fmt.Sprintf("slides/s%d.xml", i))
		slides = append(slides, fmt.Sprintf("ppt/slides/s%d.xml", i), `<s xmlns:a="a"><a:p><a:r><a:t>slide</a:t></a:r></a:p></s>`,
			fmt.Sprintf("ppt/slides/_rels/s%d.xml.rels", i), related("notesSlide", "../notes/n.xml"))
	}
	for name, content := range map[string][]byte{
		"a chapter of a book": Zip("mimetype", "application/epub+zip", "META-INF/container.xml", `<c><rootfile full-path="b.opf"/></c>`,
			"b.opf", `<p><manifest><item id="a" href="a.html"/>`+repeat(`<item id="a#" href="./a.html"/>`)+`</manifest><spine>`+repeat(`<itemref idref="a"/><itemref idref="a#"/>`)+`</spine></p>`,
			"a.html", "<html><body><p>zanzibar</p></body></html>"),
		"a slide": Zip("_rels/.rels", related("officeDocument", "ppt/presentation.xml"),
			"ppt/presentation.xml", `<p xmlns:r="r">`+repeat(`<sldId id="1" r:id="r0"/><sldId id="1" r:id="r#"/>`)+`</p>`,
			"ppt/_rels/presentation.xml.rels", related(parts("slide", "slides/s.xml")...), "ppt/slides/s.xml", slide),
		"the notes of slides": Zip(append(slides, "_rels/.rels", related("officeDocument", "ppt/presentation.xml"),
			"ppt/presentation.xml", `<p xmlns:r="r">`+repeat(`<sldId id="1" r:id="r#"/>`)+`</p>`,
			"ppt/_rels/presentation.xml.rels", related(own...), "ppt/notes/n.xml", slide)...),
		"the footnotes of a document": Zip("_rels/.rels", related("officeDocument", "word/document.xml"),
			"word/document.xml", `<d>`+P("", "text")+`</d>`, "word/_rels/document.xml.rels", related(parts("footnotes", "f.xml")...), "word/f.xml", `<f>`+P("", "zanzibar")+`</f>`),
		"a sheet": workbook(times, `<row r="1"><c r="A1" t="inlineStr"><is><t>zanzibar</t></is></c></row>`),
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := read(t, "a", content)
			if n := strings.Count(got, "zanzibar"); err != nil || n != 1 {
				t.Errorf("it was read %d times, %v:\n%.500s", n, err, got)
			}
		})
	}
}

// workbook makes one of so many sheets, all of the same part.
func workbook(sheets int, rows string) []byte {
	var list strings.Builder
	var rels []string
	for i := range sheets {
		fmt.Fprintf(&list, `<sheet name="S%d" sheetId="%d" r:id="r%d"/>`, i, i+1, i)
		rels = append(rels, "worksheet", "worksheets/s.xml")
	}
	const spaces = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	return Zip("[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels", related("officeDocument", "xl/workbook.xml"),
		"xl/workbook.xml", `<workbook `+spaces+`><sheets>`+list.String()+`</sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", related(rels...),
		"xl/worksheets/s.xml", `<worksheet `+spaces+`><sheetData>`+rows+`</sheetData></worksheet>`)
}

func TestTheTextOfAFileIsBoundedByItsSize(t *testing.T) {
	const most = 21 << 20 // of files of up to a MB
	cell := `<table:table-cell table:number-columns-repeated="100"><text:p>` + strings.Repeat("word ", 20) + `</text:p></table:table-cell>`
	label := `<n><abstractNum abstractNumId="7"><lvl ilvl="0"><numFmt val="decimal"/><lvlText val="` + strings.Repeat("%1.", 20_000) + `"/></lvl></abstractNum><num numId="1"><abstractNumId val="7"/></num></n>`
	for name, c := range map[string]struct {
		file    string
		content []byte
		reason  string // empty: the text is bounded without
	}{
		"rows and columns that are repeated": {"a", ODF("spreadsheet", `<o:spreadsheet><table:table table:name="T">`+
			strings.Repeat(`<table:table-row table:number-rows-repeated="100">`+cell+`</table:table-row>`, 100)+`</table:table></o:spreadsheet>`), "repeats itself"},
		"a long key of many values": {"a.json", []byte(`{"` + strings.Repeat("k", 300) + `":[1` + strings.Repeat(",1", 300_000) + `]}`), ""},
		"keys in keys":              {"a.json", []byte(strings.Repeat(`{"`+strings.Repeat("k", 500)+`":`, 900) + `{"a":1` + strings.Repeat(`,"a":1`, 20_000) + strings.Repeat("}", 901)), ""},
		"a label for each item": {"a", Zip("word/document.xml", "<d>"+strings.Repeat(P(Numbered(1, 0), "a"), 20_000)+"</d>",
			"word/_rels/document.xml.rels", related("numbering", "numbering.xml"), "word/numbering.xml", label), ""},
		"wide rows": {"a", workbook(1, strings.Repeat(`<row><c r="XFD1"><v>1</v></c></row>`, 1000)), "repeats itself"},
	} {
		t.Run(name, func(t *testing.T) {
			size := 0
			_, err := extract.Read(t.Context(), c.file, c.content, func(b extract.Block) error { size += len(b.Text); return nil })
			var told *extract.Error
			if errors.As(err, &told) != (c.reason != "") || c.reason != "" && !strings.Contains(told.Message, c.reason) {
				t.Errorf("got %v", err)
			}
			if len(c.content) > 1<<20 || size > most {
				t.Errorf("%d bytes of text in a file of %d", size, len(c.content))
			}
		})
	}
}

func TestEmptyCellsTakeNoTime(t *testing.T) {
	empty := `<table:table-row table:number-rows-repeated="100">` + strings.Repeat(`<table:table-cell table:number-columns-repeated="100"/>`, 100) + `</table:table-row>`
	got, _, err := read(t, "a", ODF("spreadsheet", `<o:spreadsheet><table:table table:name="T">`+strings.Repeat(empty, 1000)+
		`<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row></table:table></o:spreadsheet>`))
	if want := "sheet1 T\nrow1 a\n"; err != nil || got != want {
		t.Errorf("got %.200s, %v", got, err)
	}
}

func TestWhetherAFileIsPlainIsToldWithoutLookingIntoIt(t *testing.T) {
	for name, c := range map[string]struct {
		file, content string
		want          bool
	}{
		"text":       {"a.txt", "words", true},
		"markdown":   {"a.md", "# Words\n\nPKI and {\\rtf", true},
		"an archive": {"a.txt", string(Zip("mimetype", "words")), false},
		// Archives may be valid UTF-8 from end to end.
		"a readable archive": {"a.txt", "PK\x03\x04 words", false},
		"PDF":                {"a.txt", "%PDF-1.4 words", false},
		"RTF":                {"a.txt", `{\rtf1 words}`, false},
		"HTML":               {"a.txt", "<html><p>words", false},
		"another encoding":   {"a.txt", string(Encode("windows-1251", "слова и слова")), false},
		"escapes":            {"a.txt", string(Encode("iso-2022-jp", "これは日本語です")), false},
	} {
		if got := extract.Plain(c.file, []byte(c.content)); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAPDFIsReadWithoutPdftotextWhereThatDoesNotRun(t *testing.T) {
	for name, program := range map[string]string{
		"its libraries are missing": "#!/bin/sh\necho 'error while loading shared libraries' >&2\nexit 127\n",
		"its interpreter is":        "#!/nowhere/at/all\n",
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "pdftotext"), []byte(program), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", folder)
			got, info, err := read(t, "a", PDF("The zanzibar clause"))
			if err != nil || info.Reader != "pdfium" || got != "p @1 The zanzibar clause\n" {
				t.Errorf("%+v, %v: %s", info, err, got)
			}
		})
	}
}
