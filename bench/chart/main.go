// Command chart draws the columns of a table in CSV, each in a box of its own, over
// its first column. Where a column is named "store: figure", those of one figure
// share a box. It is a module of its own, so that who builds Backstory needn't know
// what it is drawn with.
//
//	go run -C bench/chart . soak.png < soak.csv
package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: chart picture.png < table.csv")
	}
	rows, err := csv.NewReader(os.Stdin).ReadAll()
	if err != nil {
		return err
	}
	if len(rows) < 2 {
		return fmt.Errorf("the table has no rows")
	}
	var boxes []*plot.Plot
	var figures []string
	lines := map[string]int{}
	for column := 1; column < len(rows[0]); column++ {
		name, figure, ok := strings.Cut(rows[0][column], ": ")
		if !ok {
			name, figure = "", name
		}
		at := slices.Index(figures, figure)
		if at < 0 {
			at = len(boxes)
			p := plot.New()
			p.Title.Text, p.X.Label.Text, p.Y.Min = figure, rows[0][0], 0
			p.Add(plotter.NewGrid())
			boxes, figures = append(boxes, p), append(figures, figure)
		}
		points := make(plotter.XYs, 0, len(rows)-1)
		for _, row := range rows[1:] {
			x, errX := strconv.ParseFloat(row[0], 64)
			y, errY := strconv.ParseFloat(row[column], 64)
			if errX == nil && errY == nil {
				points = append(points, plotter.XY{X: x, Y: y})
			}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("%s: %w", rows[0][column], err)
		}
		line.Color = plotutil.Color(lines[figure])
		lines[figure]++
		boxes[at].Add(line)
		if name != "" {
			boxes[at].Legend.Add(name, line)
		}
	}
	const width, height = 9 * vg.Inch, 2.6 * vg.Inch
	img := vgimg.New(width, height*vg.Length(len(boxes)))
	tiles := draw.Tiles{Rows: len(boxes), Cols: 1, PadY: vg.Points(8)}
	grid := make([][]*plot.Plot, len(boxes))
	for i, b := range boxes {
		grid[i] = []*plot.Plot{b}
	}
	for i, row := range plot.Align(grid, tiles, draw.New(img)) {
		boxes[i].Draw(row[0])
	}
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
