package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// message is one message of a conversation.
type message struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Name string `json:"name"`
	Text string `json:"text"`
	Date string `json:"date"`
}

type session struct {
	ID       string    `json:"id"`
	Messages []message `json:"messages"`
}

// question is asked about a session; evidence are the messages that answer it.
type question struct {
	Session  string   `json:"session"`
	Question string   `json:"question"`
	Evidence []string `json:"evidence"`
	Category string   `json:"category"`
}

// conversations are a folder of memory/.
type conversations struct {
	name      string
	sessions  []session
	questions []question
}

func readConversations(dir string) (c conversations, err error) {
	c.name = filepath.Base(dir)
	if c.sessions, err = readLines[session](filepath.Join(dir, "sessions.jsonl")); err != nil {
		return c, err
	}
	if c.questions, err = readLines[question](filepath.Join(dir, "questions.jsonl")); err != nil {
		return c, err
	}
	known := make(map[[2]string]bool)
	for _, s := range c.sessions {
		for _, m := range s.Messages {
			known[[2]string{s.ID, m.ID}] = true
		}
	}
	for i, q := range c.questions {
		for _, id := range q.Evidence {
			if !known[[2]string{q.Session, id}] {
				return c, fmt.Errorf("%s: question %d: session %s has no message %s", dir, i+1, q.Session, id)
			}
		}
		if len(q.Evidence) == 0 {
			return c, fmt.Errorf("%s: question %d has no evidence", dir, i+1)
		}
	}
	return c, nil
}

// date reads the time of a message; without a zone it is UTC.
func date(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date", s)
}

// fileQuestion is asked about files; the excerpts answer it.
type fileQuestion struct {
	Query       string   `json:"query"`
	Text        string   `json:"text"`
	File        string   `json:"file"`
	MustContain []string `json:"must_contain"`
}

// document is one of a corpus.
type document struct {
	ID   string `json:"doc"`
	Text string `json:"text"`
}

type query struct {
	ID   string `json:"query"`
	Text string `json:"text"`
}

// corpus is a folder of retrieval/ with a corpus.jsonl.
type corpus struct {
	name     string
	docs     []document
	queries  []query
	relevant map[string]map[string]bool // documents by query
}

func readCorpus(dir string) (c corpus, err error) {
	c.name = filepath.Base(dir)
	if c.docs, err = readLines[document](filepath.Join(dir, "corpus.jsonl")); err != nil {
		return c, err
	}
	all, err := readLines[query](filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return c, err
	}
	if c.relevant, err = readRelevant(filepath.Join(dir, "qrels.tsv")); err != nil {
		return c, err
	}
	for _, q := range all {
		if len(c.relevant[q.ID]) > 0 {
			c.queries = append(c.queries, q)
		}
	}
	return c, nil
}

// readRelevant reads lines of query, document and grade.
func readRelevant(path string) (map[string]map[string]bool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	relevant := make(map[string]map[string]bool)
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		var grade float64
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: expected query, document and grade, not %q", path, line)
		}
		if _, err := fmt.Sscan(fields[2], &grade); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		if grade <= 0 {
			continue
		}
		if relevant[fields[0]] == nil {
			relevant[fields[0]] = make(map[string]bool)
		}
		relevant[fields[0]][fields[1]] = true
	}
	return relevant, nil
}

// expectation says what the text of a file must hold, and must not.
type expectation struct {
	File           string   `json:"file"`
	MustContain    []string `json:"must_contain"`
	MustNotContain []string `json:"must_not_contain"`
}

// readLines reads a file of JSON objects, one a line.
func readLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []T
	const longest = 64 << 20
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longest)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		all = append(all, v)
	}
	return all, lines.Err()
}

// folders lists the folders in dir that hold a file of this name; none where
// dir doesn't exist.
func folders(dir, holding string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*", holding))
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, err
}
