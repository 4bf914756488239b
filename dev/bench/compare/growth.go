//go:build unix

package main

import (
	"bytes"
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format
)

// million is the number of objects for extrapolating memory.
const million = 1_000_000

// series is a kind of cache, measured at several numbers of objects.
type series struct{ label, side, task string }

var growthSeries = []series{
	{"client-go, unstructured", "theirs", "cache"},
	{"client-go, typed, protobuf", "theirs", "cache-typed"},
	{"anykind, full", "ours", "cache"},
	{"anykind, lazy", "ours", "cache-lazy"},
	{"anykind, packed", "ours", "cache-packed"},
}

func (s series) run(count int) run { return run{s.side, s.task, count} }

func (s series) cost(count int, figure string) cost { return cost{s.run(count), figure} }

// growthRuns lists the runs of all series.
func growthRuns(counts []int) []run {
	var runs []run
	for _, count := range counts {
		for _, s := range growthSeries {
			runs = append(runs, s.run(count))
		}
	}
	return runs
}

// growthRow is a line of the page: bytes of heap for each object, and for a million objects.
type growthRow struct {
	Label     string
	PerObject []string
	// Million is extrapolated from the two largest numbers of objects.
	Million string
	// Checked is the error of the same extrapolation, from the two smallest numbers to the largest; "" with fewer than three.
	Checked string
}

// growthRows returns a row for each series.
func growthRows(counts []int, kept *results) []growthRow {
	var rows []growthRow
	for _, s := range growthSeries {
		held := make([]float64, len(counts))
		row := growthRow{Label: s.label}
		for i, count := range counts {
			held[i] = kept.of(s.cost(count, "held"))
			row.PerObject = append(row.PerObject, fmt.Sprintf("%.0f", held[i]/float64(count)))
		}
		if last := len(counts) - 1; last > 0 {
			row.Million = fmt.Sprintf("%.2f GB", extrapolated(counts[last-1:], held[last-1:], million)/1e9)
			if last > 1 {
				row.Checked = fmt.Sprintf("%+.1f %%", 100*(extrapolated(counts, held, counts[last])/held[last]-1))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// extrapolated returns the value at a number of objects on the line through the first two points.
func extrapolated(counts []int, values []float64, at int) float64 {
	slope := (values[1] - values[0]) / float64(counts[1]-counts[0])
	return values[0] + slope*float64(at-counts[0])
}

// growthPlot draws a figure of all series over the number of objects, both axes logarithmic.
func growthPlot(title, unit, figure string, scale float64, counts []int, kept *results) ([]byte, error) {
	p := newPlot(title, unit)
	p.X.Label.Text = "objects"
	p.X.Scale = plot.LogScale{}
	p.Y.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	for i, s := range growthSeries {
		points := make(plotter.XYs, len(counts))
		for j, count := range counts {
			points[j] = plotter.XY{X: float64(count), Y: kept.of(s.cost(count, figure)) * scale}
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", s.label, err)
		}
		line.Color = plotutil.Color(i)
		marks.Color = plotutil.Color(i)
		marks.Shape = plotutil.Shape(i)
		p.Add(line, marks)
		p.Legend.Add(s.label, line, marks)
	}
	return svg(p, 560, 360)
}

// changePlot draws the CPU time of a change as a bar for each kind of cache.
func changePlot(events int, kept *results) ([]byte, error) {
	bars := []series{
		{"client-go,\nunstructured", "theirs", "cache-event"}, {"client-go,\ntyped, protobuf", "theirs", "cache-event-typed"},
		{"anykind,\nfull", "ours", "cache-event"}, {"anykind,\nlazy", "ours", "cache-event-lazy"}, {"anykind,\npacked", "ours", "cache-event-packed"},
	}
	p := newPlot("CPU of a change in a synced cache", "µs")
	values := make(plotter.Values, len(bars))
	labels := make([]string, len(bars))
	for i, s := range bars {
		values[i] = kept.of(s.cost(events, "event-cpu")) * 1e6
		labels[i] = s.label
	}
	chart, err := plotter.NewBarChart(values, vg.Points(40))
	if err != nil {
		return nil, fmt.Errorf("plot changes: %w", err)
	}
	chart.Color = plotutil.Color(2)
	p.Add(chart)
	p.NominalX(labels...)
	p.Y.Min = 0
	p.Y.Max = slices.Max(values) * 1.1
	return svg(p, 560, 300)
}

func newPlot(title, unit string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Y.Label.Text = unit
	p.Legend.Top = true
	p.Legend.Left = true
	p.Add(plotter.NewGrid())
	return p
}

func svg(p *plot.Plot, width, height vg.Length) ([]byte, error) {
	canvas, err := p.WriterTo(width, height, "svg")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}
