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
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageText string

// The plots' files, in the folder of the page.
const (
	plotName       = "benchmarks.svg"
	heapPlotName   = "benchmarks-heap.svg"
	syncPlotName   = "benchmarks-sync.svg"
	changePlotName = "benchmarks-change.svg"
)

// headlines are the comparisons of the page's first table: like with like, and each with its strongest peer.
var headlines = []string{
	"list-objects-paged-cpu", "list-iterate-heap", "watch-decode", "get-latency", "cache-typed-heap-lazy", "cache-typed-heap-packed",
	"cache-typed-event-cpu-lazy", "cache-event-cpu", "binary-size", "cold-cli",
}

// page is the data of the template.
type page struct {
	Versions                           versions
	Day                                string
	Pods                               string
	PodBytes                           string
	Events, Calls, Changes, Deleted    int
	MixedObjects                       int
	Processors                         int
	HugePages                          string // the kernel's use of transparent ones
	Headlines, Lines                   []line
	Growth                             []growthRow
	GrowthCounts                       []int
	Churn                              []churnRow
	Missing                            string // unmeasured groups
	Older                              string // groups measured with another state of the library
	Managers                           []managerRow
	HeapPlot, SyncPlot, ChangePlot     string
	Missed                             []line
	Profiles                           []profile
	Plot                               string
	RoundsFew, RoundsMany, RoundsFirst int
}

type line struct{ Name, What, Aim, Ratio, Result string }

// versions are the versions of the compared programs.
type versions struct{ Go, ClientGo, ControllerRuntime, Server, Platform string }

func (v versions) String() string {
	return fmt.Sprintf("client-go %s, controller-runtime %s, %s %s and Kubernetes %s", v.ClientGo, v.ControllerRuntime, v.Go, v.Platform, v.Server)
}

// writePage writes BENCHMARKS.md and its plots. Unmeasured groups are omitted and named on the page.
func writePage(ctx context.Context, opts *options, server *server, sides *sides, v versions, kept *results) error {
	text, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	missing := kept.missing(opts.allGroups(), v)
	isMissing := func(r run) bool { return slices.Contains(missing, r.groupName()) }
	results := slices.DeleteFunc(opts.resultsOf(opts.all(), kept), func(r result) bool {
		return isMissing(r.ours.run) || isMissing(r.theirs.run) || !kept.isMeasured(r.ours) || !kept.isMeasured(r.theirs)
	})
	growth := slices.DeleteFunc(slices.Clone(opts.growth), func(count int) bool { return isMissing(growthSeries[0].run(count)) })
	managed := slices.DeleteFunc(slices.Clone(opts.pods), func(count int) bool { after, _ := managerForms[0].runs(count); return isMissing(after) })
	p := page{
		Missing: strings.Join(missing, ", "), Older: strings.Join(kept.older(), ", "),
		Day: kept.days(), Versions: v,
		Pods: joinCounts(opts.pods), Events: opts.events, Calls: opts.calls, Changes: opts.changes, Deleted: deleted, MixedObjects: slices.Min(opts.pods), Processors: runtime.NumCPU(), HugePages: hugePages(), Plot: plotName,
		HeapPlot: heapPlotName, SyncPlot: syncPlotName, ChangePlot: changePlotName,
		Growth: growthRows(growth, kept), GrowthCounts: growth, Churn: churnRows(opts.changes, kept), Managers: managerRows(managed, kept),
		RoundsFew: opts.roundsOf(run{task: "list", count: 1 << 20}), RoundsMany: opts.roundsOf(run{task: "list"}), RoundsFirst: opts.roundsOf(run{task: "first"}),
	}
	if isMissing(churnSeries[0].run(opts.changes)) {
		p.Churn = nil
	}
	if isMissing(run{"ours", "cache-event", opts.events}) {
		p.ChangePlot = ""
	}
	if len(growth) < 2 { // too few for a line
		p.HeapPlot = ""
		p.SyncPlot = ""
	}
	if kept.PodBytes == "" {
		if kept.PodBytes, err = server.podSize(ctx, opts.pods[0]); err != nil {
			return err
		}
	}
	p.PodBytes = kept.PodBytes
	for _, r := range results {
		shown := line{Name: r.name, What: r.what, Aim: fmt.Sprintf("≤ %.2f", r.aim), Ratio: r.shown(), Result: "met"}
		if r.missed() {
			shown.Result = fmt.Sprintf("missed by %.1f %%", 100*(r.ratio()/r.aim-1))
			p.Missed = append(p.Missed, shown)
		}
		p.Lines = append(p.Lines, shown)
		if slices.Contains(headlines, r.nameAt(slices.Max(opts.pods))) {
			p.Headlines = append(p.Headlines, shown)
		}
	}
	if err := profileMissed(ctx, opts, server, sides, results, kept); err != nil {
		return err
	}
	p.Profiles = kept.Profiles
	var written bytes.Buffer
	if err := text.Execute(&written, p); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(opts.docs, "BENCHMARKS.md"), written.Bytes(), 0o644); err != nil {
		return err
	}
	if err := writePlots(opts, &p, results, kept); err != nil {
		return err
	}
	paths, err := documents(opts.docs)
	if err != nil {
		return err
	}
	return writeFigures(paths, results)
}

// writePlots writes the page's plots.
func writePlots(opts *options, p *page, compared []result, kept *results) error {
	files := map[string][]byte{plotName: ratioPlot(compared)}
	var err error
	if p.HeapPlot != "" {
		if files[p.HeapPlot], err = growthPlot("live heap of a synced cache of pods", "MB", "held", 1e-6, p.GrowthCounts, kept); err != nil {
			return err
		}
		if files[p.SyncPlot], err = growthPlot("time until a cache of pods is synced", "s", "sync-wall", 1, p.GrowthCounts, kept); err != nil {
			return err
		}
	}
	if p.ChangePlot != "" {
		if files[p.ChangePlot], err = changePlot(opts.events, kept); err != nil {
			return err
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(opts.docs, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// hugePages returns the kernel's use of transparent huge pages: always, madvise or never. It is empty if unknown.
func hugePages() string {
	modes, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // for instance: always [madvise] never
	_, selected, _ := strings.Cut(string(modes), "[")
	mode, _, _ := strings.Cut(selected, "]")
	return mode
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
	peers, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/client-go", "sigs.k8s.io/controller-runtime").Output()
	if err != nil {
		return found, fmt.Errorf("find the versions of client-go and controller-runtime: %w", err)
	}
	found.ClientGo, found.ControllerRuntime, _ = strings.Cut(strings.TrimSpace(string(peers)), "\n")
	found.Server, err = server.version(ctx)
	return found, err
}
