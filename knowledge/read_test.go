package knowledge

import (
	"errors"
	"strings"
	"testing"
)

func TestTextIsReadWhateverItsName(t *testing.T) {
	for name, c := range map[string]struct{ file, content, want string }{
		"markdown":               {"a.md", "# A\n\ntext", "# A\n\ntext"},
		"no extension":           {"README", "text", "text"},
		"a name that lies":       {"a.pdf", "just text", "just text"},
		"byte order mark":        {"a.txt", "\ufefftext", "text"},
		"line ends":              {"a.txt", "a\r\nb\rc\n", "a\nb\nc\n"},
		"terminal colours":       {"a.log", "\x1b[31merror\x1b[0m: disk is full", "\x1b[31merror\x1b[0m: disk is full"},
		"begins like an image":   {"a.txt", "BMW and RIFF are names", "BMW and RIFF are names"},
		"the kana of a web page": {"a.txt", "データ", "データ"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := Read(c.file, []byte(c.content))
			if err != nil || doc.Text != c.want {
				t.Errorf("got %q, %v", doc.Text, err)
			}
		})
	}
}

func TestOtherFilesAreRefusedByTheirContent(t *testing.T) {
	for name, c := range map[string]struct{ content, kind string }{
		"PDF":           {"%PDF-1.7\n%\xe2\xe3", "a PDF document"},
		"DOCX":          {"PK\x03\x04\x14\x00", "a ZIP archive or an Office document"},
		"DOC":           {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"},
		"RTF":           {`{\rtf1\ansi text}`, "an RTF document"},
		"PNG":           {"\x89PNG\r\n\x1a\n\x00", "an image"},
		"gzip":          {"\x1f\x8b\x08\x00", "a compressed file"},
		"UTF-16":        {"\xff\xfeh\x00i\x00", "text in UTF-16"},
		"Latin-1":       {"caf\xe9", "text in an encoding other than UTF-8"},
		"NUL":           {"text\x00text", "binary data"},
		"control bytes": {"\x01\x02\x03\x04text", "binary data"},
		"random bytes":  {"\x9a\x00\xff\x13\x37", "binary data"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("a.txt", []byte(c.content))
			var unsupported *UnsupportedError
			if !errors.As(err, &unsupported) || unsupported.Kind != c.kind {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "plain text, Markdown and source code in UTF-8") {
				t.Errorf("the error doesn't say what can be read: %v", err)
			}
		})
	}
}

func TestFilesWithoutTextAreRefused(t *testing.T) {
	for _, content := range []string{"", " \n\t\r\n", "\ufeff", "\u00a0\u200b\u3000"} {
		if _, err := Read("a.txt", []byte(content)); !errors.Is(err, ErrNoText) {
			t.Errorf("%q: got %v", content, err)
		}
	}
}
