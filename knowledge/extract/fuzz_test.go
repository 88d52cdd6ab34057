package extract_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/backstory-proxy/backstory/internal/extracttest"
	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// checked reads a file and tests what holds for every block. A file may be
// refused, but must not bring its reader down.
func checked(t *testing.T, name string, content []byte) {
	info, err := extract.Read(context.Background(), name, content, func(b extract.Block) error {
		if b.Text == "" || !utf8.ValidString(b.Text) || strings.ContainsAny(b.Text, "\x00\r\f") {
			t.Errorf("text %q", b.Text)
		}
		if b.Kind > extract.Sheet || b.Level < 0 || b.Level > 6 || b.Page < 0 || (b.Kind == extract.Heading || b.Kind == extract.Sheet) && (b.Level == 0 || strings.Contains(b.Text, "\n")) ||
			b.Kind == extract.Row && strings.Contains(b.Text, "\n") {
			t.Errorf("block %+v", b)
		}
		return nil
	})
	if err != nil && err.Error() == "" || err == nil && info.Reader == "" {
		t.Errorf("%+v, %v", info, err)
	}
}

// fuzzWith has the fuzzer write what make puts into a document.
func fuzzWith(f *testing.F, name string, make func(s string) []byte, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checked(t, name, make(s)) })
}

// fuzzBytes has the fuzzer write whole files.
func fuzzBytes(f *testing.F, name string, seeds ...[]byte) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content []byte) { checked(t, name, content) })
}

func raw(s string) []byte { return []byte(s) }

func FuzzDOCX(f *testing.F) {
	fuzzWith(f, "a", DOCX, P(Style("H1"), "a")+P(Numbered(1, 0), "b")+P(Numbered(2, 1), "c")+Table([]string{"d", "e"}),
		`<w:p><mc:AlternateContent><mc:Choice><w:t>a</w:t></mc:Choice><mc:Fallback><w:t>b</w:t></mc:Fallback></mc:AlternateContent></w:p>`,
		`<w:tbl><w:tr><w:tc><w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl><w:p><w:r><w:sym w:char="41"/><w:br/></w:r><w:txbxContent><w:p/></w:txbxContent></w:p>`)
}

func FuzzDOCXNumbering(f *testing.F) {
	fuzzWith(f, "a", func(s string) []byte {
		return Zip("word/document.xml", "<d>"+strings.Repeat(P(Numbered(1, 0), "a")+P(Numbered(1, 3), "b"), 3)+"</d>",
			"word/_rels/document.xml.rels", `<Relationships><Relationship Id="a" Type="x/numbering" Target="numbering.xml"/></Relationships>`,
			"word/numbering.xml", s)
	}, `<n><abstractNum abstractNumId="7"><lvl ilvl="0"><start val="3"/><numFmt val="upperRoman"/><lvlText val="%1.%4"/></lvl></abstractNum><num numId="1"><abstractNumId val="7"/><lvlOverride ilvl="0"><startOverride val="0"/></lvlOverride></num></n>`)
}

func FuzzPPTX(f *testing.F) {
	fuzzWith(f, "a", func(s string) []byte { return PPTX([2]string{"Title", s}) }, "text",
		`</a:t></a:r></a:p></p:txBody></p:sp><a:tbl><a:tr><a:tc><a:p><a:pPr lvl="2"/><a:r><a:t>x</a:t></a:r></a:p></a:tc></a:tr></a:tbl><p:sp><p:txBody><a:p><a:r><a:t>`)
}

func FuzzXLSXSheet(f *testing.F) {
	fuzzWith(f, "a", func(s string) []byte {
		return Zip("[Content_Types].xml", `<Types/>`, "_rels/.rels", `<Relationships/>`, "xl/workbook.xml", `<workbook><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
			"xl/worksheets/sheet1.xml", s)
	}, `<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1"><v>5</v></c></row></sheetData></worksheet>`)
}

func FuzzODF(f *testing.F) {
	fuzzWith(f, "a", func(s string) []byte { return ODF("text", s) },
		`<text:h text:outline-level="2">a</text:h><text:p>b<text:s text:c="9"/><text:note><text:p>c</text:p></text:note></text:p><text:list><text:list-item><text:p>d</text:p></text:list-item></text:list>`,
		`<table:table table:name="T"><table:table-row table:number-rows-repeated="9"><table:table-cell table:number-columns-repeated="9"><text:p>e</text:p></table:table-cell></table:table-row></table:table>`)
}

func FuzzEPUB(f *testing.F) {
	fuzzWith(f, "a", func(s string) []byte { return EPUB(s, "<p>end</p>") }, "<h1>One</h1><p>text", "<svg><title>x")
}

func FuzzZip(f *testing.F) {
	fuzzBytes(f, "a", Zip("word/document.xml", "<d><p><t>a</t></p></d>"), Zip("mimetype", "application/epub+zip"), Zip("content.xml", "<p>a</p>"), Zip("xl/workbook.xml", "<w/>"))
}

func FuzzHTML(f *testing.F) {
	fuzzWith(f, "a.html", raw, page, "<!doctype html><li><p>a<h1><div>b<pre><br>c<table><tr><td>d<td><table><td>e<td>f<textarea>", "<html><meta charset=utf-7>"+strings.Repeat("<p>long text, and more of it, to be an article.</p>", 50))
}

func FuzzXML(f *testing.F) {
	fuzzWith(f, "a.xml", raw, `<?xml version="1.0" encoding="koi8-r"?><a b="c"><d>e&amp;&eacute;</d>f<![CDATA[g]]></a>`)
}

func FuzzRTF(f *testing.F) {
	fuzzWith(f, "a", func(s string) []byte { return []byte(`{\rtf1` + s) },
		`\ansicpg1250{\fonttbl{\f0\fcharset128 A;}}\f0 a\'83\u8364?\uc2\u-10179 xx\trowd\intbl b\cell\row\par{\*\x c}\bin3 abc\~\_}`, `\bin-9\u\'\`)
}

func FuzzCSV(f *testing.F) { fuzzWith(f, "a.csv", raw, "a;b\n\"c\n\";d\n", "a\tb\tc\n\"", ",,,") }

func FuzzJSON(f *testing.F) {
	fuzzWith(f, "a.json", raw, `[{"a":[1,"b",null,true],"c":{"d":{}}}]`, "{\"a\":1}\n{\"a\":2}\n", `{"a`)
}

func FuzzNotebook(f *testing.F) {
	fuzzWith(f, "a.ipynb", raw, `{"cells":[{"cell_type":"code","source":["a"],"outputs":[{"text":"b","data":{"text/plain":["c"]}}]}]}`)
}

func FuzzText(f *testing.F) {
	var seeds [][]byte
	for _, e := range []string{"utf-16le", "shift_jis", "gb18030", "euc-kr", "windows-1251", "iso-2022-jp"} {
		s := "text"
		if e != "windows-1251" {
			s = "日本"
		}
		if e == "euc-kr" {
			s = "한국"
		}
		seeds = append(seeds, Encode(e, s))
	}
	fuzzBytes(f, "a.txt", append(seeds, []byte("\xff\xfe\x00\x00a"), []byte("\xfe\xff\x00a"), []byte("# a\r\nb\r"))...)
}

func FuzzPDF(f *testing.F) {
	fuzzBytes(f, "a.pdf", PDF("one\ntwo", "three"), []byte("%PDF-1.4\ntrailer<</Root 1 0 R>>"))
}
