package extract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/backstory-proxy/backstory/internal/extracttest"
	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// read returns the blocks of a file as lines "kind text", with level and page.
func read(t testing.TB, name string, content []byte) (string, extract.Info, error) {
	t.Helper()
	var b strings.Builder
	info, err := extract.Read(t.Context(), name, content, func(block extract.Block) error {
		fmt.Fprintf(&b, "%s", []string{"prose", "lines", "h", "p", "item", "row", "sheet"}[block.Kind])
		if block.Level > 0 {
			fmt.Fprintf(&b, "%d", block.Level)
		}
		if block.Page > 0 {
			fmt.Fprintf(&b, " @%d", block.Page)
		}
		fmt.Fprintf(&b, " %s\n", strings.ReplaceAll(block.Text, "\n", "⏎"))
		return nil
	})
	return b.String(), info, err
}

const page = `<html><head><title>Shop</title><script>var x = 1</script></head><body>
<h1>Refunds</h1><p>The window is <b>30</b>
days.<br>No longer.</p><ul><li>Shoes<li><p>Hats</p></ul>
<table><tr><th>Item</th><th>Price</th></tr><tr><td>Shoe <table><tr><td>left</td><td>right</td></tr></table></td><td>5&nbsp;€</td></tr></table>
<pre>a = 1
  b = 2</pre><p style="display: none">hidden</p><a href="x"><img alt="Our logo"></a></body></html>`

func TestLongPathsOfShortValuesDoNotMakeALongText(t *testing.T) {
	const depth, values = 9, 100_000
	content := []byte(strings.Repeat(`{"a name of some length":`, depth) + "[1" + strings.Repeat(",2", values) + "]" + strings.Repeat("}", depth))
	got, _, err := read(t, "a.json", content)
	if err != nil || len(got) > 10*len(content) || strings.Count(got, "row") != values+1 {
		t.Errorf("%d bytes became %d with %d values, %v", len(content), len(got), strings.Count(got, "row"), err)
	}
	if !strings.HasPrefix(got, "row1 ") || !strings.Contains(got[:300], "a name of some length: 1\n") {
		t.Errorf("it begins with %.300q", got)
	}
}

func TestDocumentsAreReadInOrderWithTheirStructure(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		content []byte
		want    string
	}{
		"docx": {"a.docx", DOCX(
			P(Style("H1"), "Refunds") + P("", "The window is <w:tab/>30 days.") + P(Style("Own"), "Deadlines") +
				P(Numbered(1, 0), "first") + P(Numbered(1, 1), "inner") + P(Numbered(1, 1), "next") + P(Numbered(1, 0), "second") + P(Numbered(2, 0), "dot") +
				Table([]string{"Item", "Price"}, []string{"Shoe", "5"}) +
				`<w:p><w:r><w:delText>gone</w:delText><w:instrText>PAGE</w:instrText><w:t>kept</w:t></w:r><w:del><w:r><w:t>gone</w:t></w:r></w:del></w:p>`),
			"h1 Refunds\np The window is 30 days.\nh2 Deadlines\nitem 1. first\nitem 1.a) inner\nitem 1.b) next\nitem 2. second\nitem - dot\n" +
				"row1 Item | Price\nrow Shoe | 5\np kept\np Weekends count.\np Confidential\n"},
		"pptx": {"a.pptx", PPTX([2]string{"Plan", "Build it"}, [2]string{"Risks", "It rains"}),
			"h1 @1 Plan\np @1 Build it\nh1 @2 Risks\np @2 It rains\n"},
		"xlsx": {"a.xlsx", XLSX("Prices", []any{"Item", "Price"}, []any{"Shoe", 5.5}, nil, []any{"Other"}),
			"sheet1 Prices\nrow1 Item | Price\nrow Shoe | 5.5\nrow1 Other\n"},
		"odt": {"a.odt", ODF("text", `<o:text><text:h text:outline-level="2">Refunds</text:h><text:p>The<text:s text:c="2"/>window<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>A note</text:p></text:note-body></text:note> is open</text:p>
			<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>
			<table:table table:name="T"><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell table:number-columns-repeated="2"><text:p>b</text:p></table:table-cell></table:table-row></table:table></o:text>`),
			"h2 Refunds\np The  window is open⏎A note\nitem - one\nrow1 a | b | b\n"},
		"ods": {"a.ods", ODF("spreadsheet", `<o:spreadsheet><table:table table:name="Prices"><table:table-row table:number-rows-repeated="2"><table:table-cell><text:p>5</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16000"/></table:table-row></table:table></o:spreadsheet>`),
			"sheet1 Prices\nrow1 5\nrow 5\n"},
		"odp":  {"a.odp", ODF("presentation", `<o:presentation><draw:page><text:p>one</text:p></draw:page><draw:page><text:p>two</text:p></draw:page></o:presentation>`), "p @1 one\np @2 two\n"},
		"epub": {"a.epub", EPUB("<h1>One</h1><p>It began.</p>", "<h1>Two</h1><p>It ended.</p>"), "h1 One\np It began.\nh1 Two\np It ended.\n"},
		"html": {"a.html", []byte(page),
			"h1 Shop\nh1 Refunds\np The window is 30 days.⏎No longer.\nitem Shoes\nitem Hats\nrow1 Item | Price\nrow Shoe left right | 5 €\nlines a = 1⏎  b = 2⏎⏎\np Our logo\n"},
		"a layout table": {"a.html", []byte("<html><table><tr><td><p>" + strings.Repeat("word ", 150) + "</p><p>Second</p></td><td>side</td></tr></table>"),
			"p " + strings.Repeat("word ", 149) + "word\np Second\np side\n"},
		"rtf": {"a.rtf", []byte(`{\rtf1\ansi\ansicpg1250{\fonttbl{\f0\fcharset238 Arial;}{\f1\fcharset204 Arial;}}{\stylesheet{\s1\outlinelevel0 heading 1;}}{\*\generator X}` +
			`{\info{\title none}}\pard\s1 Refunds\par\pard za\'bf\'f3\'b3\'e6 \f1\'cf\f0\u8364?\uc0\u21450\emdash x\par` +
			`\trowd\intbl a\cell b\par c\cell\row\pard{\pict 0102}{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}\line end}`),
			"h1 Refunds\np zażółć П€及—x\nrow1 a | b c\np link⏎end\n"},
		"csv":                       {"a.csv", []byte("name;price\n\"a;b\";1\n\n\"two\nlines\";2\n"), "row1 name | price\nrow a;b | 1\nrow two lines | 2\n"},
		"tsv":                       {"a.tsv", []byte("name\tprice\na,b\t1\n"), "row1 name | price\nrow a,b | 1\n"},
		"json":                      {"a.json", []byte(`[{"name":"Ada","tags":["x","y"],"at":{"city":"Köln"}},{"name":"Bo","ok":true,"no":null}]`), "row1 name: Ada\nrow1 tags: x\nrow1 tags: y\nrow at.city: Köln\nrow1 name: Bo\nrow ok: true\n"},
		"json lines":                {"a.jsonl", []byte("{\"a\":1}\n{\"a\":2}\n"), "row1 a: 1\nrow1 a: 2\n"},
		"no json":                   {"a.json", []byte("{it only looks like it}\n"), "lines {it only looks like it}⏎\n"},
		"a notebook":                {"a.ipynb", []byte(`{"cells":[{"cell_type":"markdown","source":["# T\n","x"]},{"cell_type":"code","source":"y=1","outputs":[{"text":["1\n"]}]}]}`), "prose # T⏎x⏎⏎\nlines y=1⏎⏎\nlines 1⏎⏎⏎\n"},
		"xml":                       {"a.xml", []byte(`<?xml version="1.0"?><list><item id="7"><name>Ada</name> and <b>more</b></item></list>`), "row1 item: id=7\nrow name: Ada\nrow item: and\nrow b: more\n"},
		"markdown":                  {"a.md", []byte("<html>\r\n# A\r\n"), "prose <html>⏎# A⏎\n"},
		"code":                      {"a.go", []byte("// # x\nfunc main() {}\n"), "lines // # x⏎func main() {}⏎\n"},
		"a PDF in name":             {"a.pdf", []byte("just text"), "prose just text\n"},
		"a text that is a document": {"a.txt", PPTX([2]string{"Plan", "Build it"}), "h1 @1 Plan\np @1 Build it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, info, err := read(t, c.file, c.content)
			if err != nil || info.Type == "" || info.Reader == "" {
				t.Fatalf("%+v, %v", info, err)
			}
			if got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestTextIsReadInItsEncoding(t *testing.T) {
	const (
		russian  = "Привет, как дела? Это простой текст на русском языке, который нужно прочитать."
		german   = "Die Rückgabefrist beträgt dreißig Tage – für alle Käufer in Österreich. Größere Mengen gehören natürlich dazu, auch für Händler."
		japanese = "これは日本語のテキストです。返品の期限は三十日間です。"
		chinese  = "这是一个中文文本文件。退货期限为三十天，从交货之日起计算。"
	)
	for name, text := range map[string]string{
		"windows-1251": russian, "koi8-r": russian, "ibm866": russian, "utf-16le": russian,
		"windows-1252": german,
		"shift_jis":    japanese, "euc-jp": japanese, "iso-2022-jp": japanese,
		"gb18030": chinese, "big5": "這是一個中文文字檔案。退貨期限為三十天，從交貨之日起計算。",
		"euc-kr":       "이것은 한국어 텍스트 파일입니다. 반품 기간은 배송일로부터 삼십 일입니다.",
		"windows-1253": "Η προθεσμία επιστροφής είναι τριάντα ημέρες από την παράδοση του προϊόντος.",
		"windows-1255": "תקופת ההחזרה היא שלושים יום ממועד המסירה של המוצר ללקוח.",
		"windows-1256": "فترة الإرجاع ثلاثون يوما من تاريخ التسليم إلى العميل.",
		"windows-874":  "ระยะเวลาการคืนสินค้าคือสามสิบวันนับจากวันที่จัดส่ง",
	} {
		t.Run(name, func(t *testing.T) {
			long := strings.Repeat("A line in ASCII.\n", 10) + text + "\n"
			for _, s := range []string{text, long} {
				content := Encode(name, s)
				got, _, err := read(t, "a.txt", content)
				if want := "prose " + strings.ReplaceAll(s, "\n", "⏎") + "\n"; err != nil || got != want {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	got, _, err := read(t, "a.html", Encode("windows-1251", `<html><meta charset=windows-1251><p>Привет`))
	if err != nil || got != "p Привет\n" {
		t.Errorf("a page that names its encoding: %q, %v", got, err)
	}
	got, _, err = read(t, "a.xml", Encode("iso-8859-2", `<?xml version="1.0" encoding="iso-8859-2"?><a>zażółć</a>`))
	if err != nil || got != "row a: zażółć\n" {
		t.Errorf("XML that names its encoding: %q, %v", got, err)
	}
}

func TestAPDFIsReadPageByPageByEitherReader(t *testing.T) {
	pages := make([]string, 6)
	for i := range pages {
		pages[i] = fmt.Sprintf("The Annual Report\nChapter %c tells of refunds and of what be-\ncame of them.\nPage %d", 'A'+i, i+1)
	}
	content := PDF(pages...)
	for _, reader := range []string{"pdftotext", "pdfium"} {
		t.Run(reader, func(t *testing.T) {
			if reader == "pdfium" {
				t.Setenv("PATH", "")
			}
			got, info, err := read(t, "report", content)
			if err != nil || info.Reader != reader || info.Type != "PDF" {
				t.Fatalf("%+v, %v (is poppler-utils installed? make deps does it)", info, err)
			}
			for i := range pages {
				if !strings.Contains(got, fmt.Sprintf("p @%d ", i+1)) || !strings.Contains(got, fmt.Sprintf("Chapter %c tells of refunds", 'A'+i)) {
					t.Errorf("page %d is missing:\n%s", i+1, got)
				}
			}
			if n := strings.Count(got, "Annual Report"); n != 2 {
				t.Errorf("the header of all pages is there %d times:\n%s", n, got)
			}
			if n := strings.Count(got, "Page "); n != 2 {
				t.Errorf("the number of all pages is there %d times:\n%s", n, got)
			}
		})
	}
}

func TestUTF16WithoutAByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{
		"Russian": "Срок возврата составляет тридцать дней.", "Greek": "Η προθεσμία είναι τριάντα ημέρες.",
		"Arabic": "مدة الإرجاع ثلاثون يوما.", "Japanese": "返品の期限は三十日です。本社は東京にあります😀。", "Korean": "반품 기한은 삼십일입니다.",
		"Chinese, with lines": "退货期限为三十天\n运费由客户承担\n", "Thai": "ระยะเวลาคืนสินค้า คือสามสิบวัน",
	} {
		for _, encoding := range []string{"utf-16le", "utf-16be"} {
			got, _, err := read(t, "a.txt", Encode(encoding, text))
			if want := "prose " + strings.ReplaceAll(text, "\n", "⏎") + "\n"; err != nil || got != want {
				t.Errorf("%s in %s: got %q, %v", name, encoding, got, err)
			}
		}
	}
	for name, content := range map[string]string{
		"ASCII with NULs": strings.Repeat("abcdefghijklmn \x00", 20),
		"numbers":         strings.Repeat("\x01\x00\x00\x00\x20\x00\x00\x00\x18\x04\x00\x00", 20),
		"noise":           "\x20\x00\x9a\x00\xff\x13\x37\x4e\x00\xd8\x21\x00",
	} {
		if got, _, err := read(t, "a.txt", []byte(content)); err == nil {
			t.Errorf("%s passes for text: %q", name, got)
		}
	}
}

func TestWhatCannotBeReadIsRefusedWithItsReason(t *testing.T) {
	docx := DOCX(P("", strings.Repeat("text ", 100)))
	bomb := Zip("_rels/.rels", "", "word/document.xml", `<w:document>`+strings.Repeat(" ", 80<<20))
	for name, c := range map[string]struct {
		content     []byte
		reason      string
		unsupported bool
	}{
		"empty":             {nil, "is empty", false},
		"white space":       {[]byte(" \n\t\u3000"), "holds no text", false},
		"binary":            {[]byte("\x9a\x00\xff\x13\x37"), "binary data", true},
		"an image":          {[]byte("\x89PNG\r\n\x1a\n\x00"), "an image", true},
		"a sound":           {[]byte("ID3\x04\x00\x00"), "a sound", true},
		"gzip":              {[]byte("\x1f\x8b\x08\x00"), "a compressed file", true},
		"a program":         {[]byte("\x7fELF\x02\x01\x01\x00"), "a program", true},
		"an old document":   {[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 600)), "(before 2007), which can't be read; please save it", true},
		"a locked document": {[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00"), "password", false},
		"an archive":        {Zip("photo.jpg", "x"), "a ZIP archive", true},
		"cut off":           {docx[:len(docx)/2], "cut off", false},
		"a zip bomb":        {bomb, "zip bomb", false},
		"no text in it":     {DOCX(""), "cannot happen", false},
		"a PDF in ruins":    {[]byte("%PDF-1.7\n%\xe2\xe3\nnothing"), "is broken", false},
		"a scan":            {PDF(""), "OCR", false},
		"broken XML in it":  {Zip("word/document.xml", "<w:document><w:body><w:p"), "is broken", false},
		"deep XML":          {Zip("word/document.xml", strings.Repeat("<a>", 100_000)), "is broken", false},
		"deep groups":       {[]byte(`{\rtf1` + strings.Repeat("{", 100_000)), "nested deeper", false},
		"deep JSON":         {[]byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), "nested deeper", false},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no text in it" {
				c.content, c.reason = Zip("word/document.xml", "<d><body/></d>"), "holds no text"
			}
			_, _, err := read(t, "a.json", c.content)
			var told *extract.Error
			if !errors.As(err, &told) || !strings.Contains(told.Message, c.reason) || told.Unsupported != c.unsupported {
				t.Errorf("got %#v", err)
			}
			if c.unsupported && !strings.Contains(told.Message, "PDF, Word") {
				t.Errorf("it doesn't say what can be read: %s", told.Message)
			}
		})
	}
}

func TestReadingEndsWithWhoWantsIt(t *testing.T) {
	enough := errors.New("enough")
	for name, content := range map[string][]byte{
		"a.txt": []byte("text"), "a.docx": DOCX(P("", "text")), "a.pptx": PPTX([2]string{"a", "b"}, [2]string{"c", "d"}),
		"a.xlsx": XLSX("s", []any{"a"}), "a.pdf": PDF("text", "more"), "a.xml": []byte("<?xml version='1.0'?><a>b</a>"),
	} {
		calls := 0
		_, err := extract.Read(t.Context(), name, content, func(extract.Block) error { calls++; return enough })
		if !errors.Is(err, enough) || calls != 1 {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := extract.Read(ctx, name, content, func(extract.Block) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
