package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The data in the repository can be read, and its excerpts stand in its files.
func TestOwnData(t *testing.T) {
	d, err := readData("testdata", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.conversations) == 0 || len(d.libraries) == 0 || len(d.corpora) == 0 || d.documents == nil {
		t.Fatalf("a part is missing: %d, %d, %d", len(d.conversations), len(d.libraries), len(d.corpora))
	}
	for _, c := range d.conversations {
		for _, v := range variants {
			if _, err := v.chat(&c.sessions[0]); err != nil {
				t.Error(err)
			}
		}
		for system, answers := range c.baselines(100_000, c.archives()) {
			for i, a := range answers {
				if !a.all {
					t.Errorf("%s: all of the session doesn't answer %q", system, c.questions[i].Question)
				}
			}
		}
	}
	for _, l := range d.libraries {
		for _, q := range l.questions {
			text, err := os.ReadFile(filepath.Join(l.dir, "files", q.File))
			if err != nil {
				t.Fatal(err)
			}
			for _, excerpt := range q.MustContain {
				if w := wordsOf(excerpt); !newPrompted(string(text)).holds(&w) {
					t.Errorf("%s doesn't hold %q", q.File, excerpt)
				}
			}
		}
	}
	for _, c := range d.corpora {
		if len(c.queries) == 0 || len(c.queries) != len(c.relevant) {
			t.Errorf("%s: %d queries, %d with documents", c.name, len(c.queries), len(c.relevant))
		}
	}
}

func TestReadDataRefuses(t *testing.T) {
	for _, c := range []struct{ name, file, content, want string }{
		{"evidence that isn't there", "memory/x/questions.jsonl", `{"session":"s","question":"q","evidence":["9"]}`, "has no message 9"},
		{"a question without evidence", "memory/x/questions.jsonl", `{"session":"s","question":"q"}`, "no evidence"},
		{"what isn't JSON", "memory/x/questions.jsonl", "\n{", "questions.jsonl:2"},
		{"a line of judgements that is too short", "retrieval/y/qrels.tsv", "q\td", "expected query, document and grade"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{
				"memory/x/sessions.jsonl":   `{"id":"s","messages":[{"id":"1","role":"user","text":"hello"}]}`,
				"memory/x/questions.jsonl":  "",
				"retrieval/y/corpus.jsonl":  `{"doc":"d","text":"t"}`,
				"retrieval/y/queries.jsonl": `{"query":"q","text":"t"}`,
				"retrieval/y/qrels.tsv":     "q\td\t1\nq\te\t0\n",
			}
			write := func() {
				for name, content := range files {
					path := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			write()
			d, err := readData(dir, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]map[string]bool{"q": {"d": true}}; !reflect.DeepEqual(d.corpora[0].relevant, want) {
				t.Errorf("relevant: %v", d.corpora[0].relevant)
			}
			files[c.file] = c.content
			write()
			if _, err := readData(dir, "", 0); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadDataRefusesAnEmptyFolder(t *testing.T) {
	if _, err := readData(t.TempDir(), "", 0); err == nil {
		t.Error("there is nothing to measure with, and nobody says so")
	}
	if d, err := readData("testdata", onlyDocs, 2); err != nil || len(d.documents.files) != 2 || d.talk || d.libraries != nil {
		t.Errorf("-only docs -limit 2: %+v, %v", d, err)
	}
}

func TestDate(t *testing.T) {
	for text, want := range map[string]int64{
		"2023-05-08T13:56:00":       1683554160,
		"2023-05-08T13:56:00+02:00": 1683546960,
		"2023-05-08":                1683504000,
	} {
		if got, err := date(text); err != nil || got.Unix() != want {
			t.Errorf("%s: %d, %v", text, got.Unix(), err)
		}
	}
	if _, err := date("yesterday"); err == nil {
		t.Error("yesterday is a date")
	}
}

func TestSpread(t *testing.T) {
	list := []int{0, 1, 2, 3, 4, 5, 6}
	for n, want := range map[int][]int{0: list, 7: list, 9: list, 1: {0}, 3: {0, 2, 4}} {
		if got := spread(list, n); !reflect.DeepEqual(got, want) {
			t.Errorf("%d: %v", n, got)
		}
	}
}
