//go:build unix

package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"
)

//go:embed page.md.tmpl
var pageText string

// plotName is the plot's file, beside the page.
const plotName = "benchmarks.svg"

// page is the data of the template.
type page struct {
	Versions                           versions
	Day                                string
	Pods                               string
	PodBytes                           string
	Events, Calls, Changes, Deleted    int
	Processors                         int
	Lines                              []line
	Missed                             []line
	Profiles                           []profile
	Plot                               string
	Rates                              string // of the changes of cache-minute, on both sides
	RoundsFew, RoundsMany, RoundsFirst int
}

type line struct{ Name, What, Aim, Ratio, Result string }

type versions struct{ Go, ClientGo, Server, Platform string }

// writePage writes BENCHMARKS.md and its plot.
func writePage(ctx context.Context, opts *options, server *server, sides *sides, results []result) error {
	text, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := page{
		Day:  time.Now().UTC().Format(time.DateOnly),
		Pods: joinCounts(opts.pods), Events: opts.events, Calls: opts.calls, Changes: opts.changes, Deleted: deleted, Processors: runtime.NumCPU(), Plot: plotName,
		RoundsFew: opts.roundsOf(run{task: "list", count: 1 << 20}), RoundsMany: opts.roundsOf(run{task: "list"}), RoundsFirst: opts.roundsOf(run{task: "first"}),
	}
	if p.Versions, err = findVersions(ctx, server); err != nil {
		return err
	}
	if p.PodBytes, err = server.podSize(ctx, opts.pods[0]); err != nil {
		return err
	}
	for _, r := range results {
		if r.name == minuteWall {
			p.Rates = joinCounts([]int{int(float64(opts.changes) / r.oursCost), int(float64(opts.changes) / r.theirsCost)})
		}
		shown := line{Name: r.name, What: r.what, Aim: fmt.Sprintf("≤ %.2f", r.aim), Ratio: r.shown(), Result: "met"}
		if r.missed() {
			shown.Result = fmt.Sprintf("missed by %.1f %%", 100*(r.ratio()/r.aim-1))
			p.Missed = append(p.Missed, shown)
		}
		p.Lines = append(p.Lines, shown)
	}
	if p.Profiles, err = profileMissed(ctx, opts, server, sides, results); err != nil {
		return err
	}
	var written bytes.Buffer
	if err := text.Execute(&written, p); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(opts.docs, "BENCHMARKS.md"), written.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(opts.docs, plotName), plot(results), 0o644)
}

// joinCounts returns numbers joined by "and".
func joinCounts(counts []int) string {
	words := make([]string, len(counts))
	for i, count := range counts {
		words[i] = fmt.Sprint(count)
	}
	return strings.Join(words, " and ")
}

func findVersions(ctx context.Context, server *server) (versions, error) {
	found := versions{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	client, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/client-go").Output()
	if err != nil {
		return found, fmt.Errorf("find client-go's version: %w", err)
	}
	found.ClientGo = strings.TrimSpace(string(client))
	found.Server, err = server.version(ctx)
	return found, err
}
