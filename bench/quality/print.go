package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// printer prints tables. It keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

// table prints lines of cells in columns; the first line is the header.
func (p *printer) table(title string, lines [][]string) {
	if p.err != nil {
		return
	}
	fmt.Fprintf(p.w, "\n%s\n\n", title)
	columns := tabwriter.NewWriter(p.w, 0, 0, 3, ' ', 0)
	for _, cells := range lines {
		fmt.Fprintln(columns, "  "+strings.Join(cells, "\t"))
	}
	p.err = columns.Flush()
}

// print prints all tables.
func (r *report) print(w io.Writer) error {
	p := &printer{w: w}
	for _, c := range r.collections(sectionMemory) {
		p.memory(c, r.of(sectionMemory, c))
	}
	for _, c := range r.collections(sectionCache) {
		p.plain("prompt cache: "+c+", the share of prompt tokens that stand at the front of the prompt before",
			r.of(sectionCache, c), "reusable", "prefix_tokens", "prompt_tokens")
	}
	for _, c := range r.collections(sectionFiles) {
		p.files(c, r.of(sectionFiles, c))
	}
	for _, c := range r.collections(sectionSearch) {
		p.plain("search: "+c, r.of(sectionSearch, c), "ndcg@10", "recall@1", "recall@5", "recall@10", "recall@20")
	}
	for _, c := range r.collections(sectionDocs) {
		p.plain("extraction: "+c+", the share of snippets, and of files with all of them and nothing forbidden",
			r.of(sectionDocs, c), "snippets", "perfect")
	}
	for _, c := range r.collections(sectionRobust) {
		p.plain("damaged files: "+c, r.of(sectionRobust, c), "passed", "slowest_seconds")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
	for _, failure := range r.Failures {
		fmt.Fprintf(w, "FAILED %s\n", failure)
	}
	fmt.Fprintf(w, "\n%s, %.0f seconds\n", r.Data, r.Seconds)
	return p.err
}

// collections are those of a section, in the order of their measurement.
func (r *report) collections(section string) (names []string) {
	for i := range r.Rows {
		if w := &r.Rows[i]; w.Section == section && !slices.Contains(names, w.Collection) {
			names = append(names, w.Collection)
		}
	}
	return names
}

func (r *report) of(section, collection string) (rows []row) {
	for _, w := range r.Rows {
		if w.Section == section && w.Collection == collection {
			rows = append(rows, w)
		}
	}
	return rows
}

// label names what was measured.
func (r *row) label() string {
	if r.System == "" || r.Store == "" {
		return r.System + r.Store
	}
	return r.System + " (" + r.Store + ")"
}

// memory prints what was asked about conversations.
func (p *printer) memory(collection string, rows []row) {
	g := newGrid(rows)
	p.table("memory: "+collection+", the share of questions with all/any of the evidence in the prompt",
		slices.Concat(g.header(""), g.lines("", "all", "any")))
	p.table("memory: "+collection+", tokens added, mean/most; prompts over the budget; the share of prompts that hold\nthe last two exchanges word for word, where they fit, and where they leave 3/4 of the budget, or 3,000 tokens",
		slices.Concat(g.header(""), g.sizes()))
	if lines := g.categories(); len(lines) > 0 {
		p.table("memory: "+collection+" by category, all/any", slices.Concat(g.header(""), lines))
	}
}

// files prints what was asked about files.
func (p *printer) files(collection string, rows []row) {
	g := newGrid(rows)
	p.table("files: "+collection+", the share of questions with all of the answer in the prompt/the mean share of it",
		slices.Concat(g.header(""), g.lines("", "full", "share"), g.sizes()))
}

// plain prints rows with their figures, and the goals behind them.
func (p *printer) plain(title string, rows []row, figures ...string) {
	lines := [][]string{append([]string{"", "n"}, figures...)}
	for _, r := range rows {
		label := r.label()
		if r.Category != "" {
			label = "  " + r.Category + " (" + r.Store + ")"
		}
		line := []string{label, fmt.Sprint(r.N)}
		for _, f := range figures {
			text := number(r.Figures[f])
			if goal, ok := r.Goals[f]; ok {
				text += " (goal " + number(goal) + ")"
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	p.table(title, lines)
}

// number is a share with three digits, or a size with none.
func number(x float64) string {
	if x > 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return strings.TrimPrefix(fmt.Sprintf("%.3f", x), "0")
}
