package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// grid has a line for each system and a column for each budget.
type grid struct {
	rows    []row
	budgets []int
	systems []string // their labels
}

func newGrid(rows []row) *grid {
	g := &grid{rows: rows}
	for i := range rows {
		if !slices.Contains(g.budgets, rows[i].Budget) {
			g.budgets = append(g.budgets, rows[i].Budget)
		}
		if label := rows[i].label(); !slices.Contains(g.systems, label) {
			g.systems = append(g.systems, label)
		}
	}
	slices.Sort(g.budgets)
	return g
}

func (g *grid) header(title string) [][]string {
	line := []string{title, "n"}
	for _, b := range g.budgets {
		line = append(line, fmt.Sprint(b))
	}
	return [][]string{line}
}

// row is the measurement of a system at a budget; nil: there is none.
func (g *grid) row(system, category string, budget int) *row {
	for i := range g.rows {
		if r := &g.rows[i]; r.label() == system && r.Category == category && r.Budget == budget {
			return r
		}
	}
	return nil
}

// line is one of the grid: cell makes the text of each measurement.
func (g *grid) line(title, system, category string, cell func(*row) string) []string {
	line := []string{title, ""}
	for _, b := range g.budgets {
		text := ""
		if r := g.row(system, category, b); r != nil {
			line[1] = fmt.Sprint(r.N)
			text = cell(r)
		}
		line = append(line, text)
	}
	return line
}

// lines are two figures of each system, and the goals under them.
func (g *grid) lines(category, first, second string) (lines [][]string) {
	for _, system := range g.systems {
		lines = append(lines, g.line(system, system, category, func(r *row) string {
			return number(r.Figures[first]) + "/" + number(r.Figures[second])
		}))
		goals := g.line("  goal", system, category, func(r *row) string {
			if r.Goals == nil {
				return ""
			}
			text := number(r.Goals[first])
			if second, ok := r.Goals[second]; ok {
				text += "/" + number(second)
			}
			return text
		})
		goals[1] = ""
		if slices.ContainsFunc(goals[2:], func(s string) bool { return s != "" }) {
			lines = append(lines, goals)
		}
	}
	return lines
}

// sizes are what was added, and whether the rules were kept.
func (g *grid) sizes() (lines [][]string) {
	for _, system := range g.systems {
		lines = append(lines, g.line(system+": tokens", system, "", func(r *row) string {
			return fmt.Sprintf("%.0f/%.0f", r.Figures["tokens_mean"], r.Figures["tokens_max"])
		}), g.line("  over the budget", system, "", func(r *row) string {
			return fmt.Sprint(r.Figures["over_budget"])
		}))
		for _, two := range [][2]string{{"  last two exchanges", "last_two"}, {"    that leave most of it", "last_two_short"}} {
			line := g.line(two[0], system, "", func(r *row) string {
				if share, ok := r.Figures[two[1]]; ok {
					return number(share)
				}
				return "-"
			})
			if slices.ContainsFunc(line[2:], func(s string) bool { return s != "-" }) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// categories are the lines of every category, of what was imported whole.
func (g *grid) categories() (lines [][]string) {
	var names []string
	for i := range g.rows {
		if c := g.rows[i].Category; c != "" && !slices.Contains(names, c) {
			names = append(names, c)
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	for _, system := range g.systems {
		if !strings.HasPrefix(system, systemFull+" (") {
			continue
		}
		lines = append(lines, []string{system})
		for _, c := range names {
			lines = append(lines, g.line("  "+c, system, c, func(r *row) string {
				return number(r.Figures["all"]) + "/" + number(r.Figures["any"])
			}))
		}
	}
	return lines
}
