package caddymodule_test

import (
	"os"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	. "github.com/backstory-proxy/backstory/internal/extracttest"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

// extractChild makes this binary, run again to read a file, do so, as the real
// program does.
func extractChild() bool {
	if len(os.Args) != 2 || os.Args[1] != sandbox.Argument {
		return false
	}
	caddycmd.Main()
	return true
}

func TestTheProgramReadsDocumentsWithItself(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	f := s.ok(s.upload(acme, "a.docx", string(DOCX(P("", "The zanzibar clause")))))
	if f.get("status").Str != "processed" || f.get("_metadata.reader").Str != "docx" {
		t.Errorf("file %s", f.body)
	}
	if r := s.chat(acme, "What is zanzibar?", ""); r.get("_metadata.rag.sources.0.fileId").Str != f.get("id").Str {
		t.Errorf("metadata %s", r.get("_metadata"))
	}
}
