package main

import (
	"encoding/json"
	"os"
	"time"
)

// row is one measurement.
type row struct {
	Section    string             `json:"section"`
	Collection string             `json:"collection"`
	Store      string             `json:"store,omitempty"` // empty: a baseline, which has none
	System     string             `json:"system,omitempty"`
	Budget     int                `json:"budget,omitempty"`   // tokens
	Category   string             `json:"category,omitempty"` // empty: all of them
	N          int                `json:"n"`                  // questions, files, exchanges
	Figures    map[string]float64 `json:"figures"`
	Goals      map[string]float64 `json:"goals,omitempty"`
}

// The sections of a report.
const (
	sectionMemory = "memory"
	sectionCache  = "cache"
	sectionFiles  = "files"
	sectionSearch = "search"
	sectionDocs   = "docs"
	sectionRobust = "robust"
)

// report is all that was measured.
type report struct {
	Data    string    `json:"data"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Rows    []row     `json:"rows"`
	// Notes say which files were not read as they should be.
	Notes []string `json:"notes,omitempty"`
	// Failures are the measurements that could not be made.
	Failures []string `json:"failures,omitempty"`
}

// add takes rows in, and sets the goals of those that have some.
func (r *report) add(rows ...row) {
	for _, w := range rows {
		w.Goals = goalsOf(&w)
		r.Rows = append(r.Rows, w)
	}
}

// writeJSON writes the report into a file.
func (r *report) writeJSON(path string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// mean is the average of some numbers, and the largest.
type mean struct {
	sum, max float64
	n        int
}

func (m *mean) add(x float64) {
	m.sum += x
	m.max = max(m.max, x)
	m.n++
}

func (m *mean) share(yes bool) {
	if yes {
		m.add(1)
	} else {
		m.add(0)
	}
}

// value is the average; 0 of nothing.
func (m *mean) value() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}
