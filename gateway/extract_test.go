package gateway_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/gateway"
	. "github.com/backstory-proxy/backstory/internal/extracttest"
)

func TestDocumentsOfAllKindsAreFoundAndCited(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for name, c := range map[string]struct {
		content       []byte
		file, reader  string
		section, page string // of the source; empty: none
	}{
		"PDF":              {PDF("Nothing here"+strings.Repeat("\nbut words and words", 30), "The zanzibar clause\nis on the second page"), "a.pdf", "pdftotext", "", "2"},
		"Word":             {DOCX(P(Style("H1"), "Terms") + P("", "The zanzibar clause")), "a.docx", "docx", "Terms", ""},
		"PowerPoint":       {PPTX([2]string{"Plan", "It is " + strings.Repeat("long ", 400)}, [2]string{"Risks", "The zanzibar clause"}), "a.pptx", "pptx", "Risks", "2"},
		"Excel":            {XLSX("Clauses", []any{"name", "since"}, []any{"zanzibar", 1964}), "a.xlsx", "excelize", "Clauses", ""},
		"writer":           {ODF("text", `<text:h text:outline-level="1">Terms</text:h><text:p>The zanzibar clause</text:p>`), "a.odt", "opendocument", "Terms", ""},
		"e-book":           {EPUB("<h1>One</h1><p>The zanzibar clause</p>"), "a.epub", "epub", "One", ""},
		"web page":         {[]byte("<html><body><h2>Terms</h2><p>The zanzibar clause"), "a.html", "x/net/html", "Terms", ""},
		"rich text":        {[]byte(`{\rtf1 The zanzibar clause\par}`), "a.rtf", "rtf", "", ""},
		"table":            {[]byte("name;since\nzanzibar;1964\n"), "a.csv", "encoding/csv", "", ""},
		"Russian":          {Encode("windows-1251", "Это простой текст на русском языке, и в нём стоит zanzibar."), "a.txt", "windows-1251", "", ""},
		"a name that lies": {DOCX(P(Style("H1"), "Terms") + P("", "The zanzibar clause")), "a.txt", "docx", "Terms", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			f := s.ok(s.upload(acme, c.file, string(c.content)))
			if f.get("status").Str != "processed" || f.get("_metadata.reader").Str != c.reader || f.get("_metadata.type").Str == "" {
				t.Errorf("file %s", f.body)
			}
			r := s.chat(acme, "What is zanzibar?", "")
			source := r.get("_metadata.rag.sources.0")
			if source.Get("fileId").Str != f.get("id").Str || source.Get("section").String() != c.section || source.Get("page").String() != c.page {
				t.Errorf("sources %s", r.get("_metadata.rag.sources"))
			}
			if !strings.Contains(upstream.last(t).body, "zanzibar") {
				t.Errorf("the router got %s", upstream.last(t).body)
			}
			if r := s.ok(s.get(acme, "/files/"+f.get("id").Str+"/content")); r.body != string(c.content) {
				t.Error("the original is not what was uploaded")
			}
			s.ok(s.do(s.request("DELETE", "/files/"+f.get("id").Str, acme, nil)))
		})
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDocumentsThatCannotBeReadAreRefusedAndLeaveNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	docx := string(DOCX(P("", strings.Repeat("text ", 100))))
	for name, c := range map[string]struct {
		content string
		status  int
		reason  string
	}{
		"cut off":         {docx[:len(docx)/2], 400, "cut off"},
		"a zip bomb":      {string(Zip("word/document.xml", "<d>"+strings.Repeat(" ", 80<<20))), 400, "zip bomb"},
		"an archive":      {string(Zip("a.jpg", "x")), 415, "a ZIP archive"},
		"a scan":          {string(PDF("", "")), 400, "OCR"},
		"an old document": {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 600), 415, "before 2007"},
		"an image":        {"\x89PNG\r\n\x1a\n\x00", 415, "an image"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			r := s.upload(acme, "a.docx", c.content)
			if r.status != c.status || r.get("error.param").Str != "file" || !strings.Contains(r.get("error.message").Str, c.reason) {
				t.Errorf("status %d: %s", r.status, r.body)
			}
		})
	}
	s.t = t
	if r := s.ok(s.get(acme, "/files")); r.get("data").Raw != "[]" {
		t.Errorf("left behind: %s", r.body)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if s.get(acme, "/files").status != http.StatusOK {
		t.Error("the proxy is gone")
	}
}

func TestAFileThatTakesLongToReadIsFinishedBehindTheReply(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.UploadWait = 1 }})
	good := s.ok(s.upload(acme, "a.docx", string(DOCX(P("", "The zanzibar clause")))))
	bad := s.ok(s.upload(acme, "b.docx", string(Zip("a.jpg", "x"))))
	if good.get("status").Str != "uploaded" || bad.get("status").Str != "uploaded" {
		t.Errorf("files %s %s", good.body, bad.body)
	}
	status := func(f reply) reply { return s.ok(s.get(acme, "/files/"+f.get("id").Str)) }
	eventually(t, "the file is processed", func() bool { return status(good).get("status").Str == "processed" })
	eventually(t, "the other has failed", func() bool { return status(bad).get("status").Str == "error" })
	if r := status(bad); !strings.Contains(r.get("status_details").Str, "a ZIP archive") {
		t.Errorf("file %s", r.body)
	}
	if r := s.chat(acme, "What is zanzibar?", ""); r.get("_metadata.rag.sources.0.fileId").Str != good.get("id").Str {
		t.Errorf("metadata %s", r.get("_metadata"))
	}
}
