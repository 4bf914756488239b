package oracle

import (
	"regexp"
	"slices"
	"sync"
)

// oracleCase is a command line for kubectl and anyctl.
type oracleCase struct {
	// line is the command line without the program, with single and double quotes as in a shell. $NS is the namespace of the
	// run; it is the default namespace of both programs.
	line string
	// readOnly lets both programs run in the namespace of the fixtures (fixtures_test.go).
	readOnly bool
	// setup are YAML documents, applied to the namespace before each run. Names of cluster-scoped objects contain $NS: both runs
	// have their own.
	setup string
	// otherSetup are YAML documents, applied by a second field manager after setup.
	otherSetup string
	// ready are objects of setup, as TYPE/NAME. The line runs after they are ready.
	ready []string
	// files are written to the program's folder.
	files map[string]string
	// stdin is the program's standard input.
	stdin string
	// env is added to the program's environment.
	env []string
	// during are steps while the program runs. Then it is interrupted by SIGINT, unless endsAlone.
	during    []step
	endsAlone bool
	// effect are objects to compare after the run, as TYPE/NAME or TYPE for all.
	effect []string
	// kubeconfigs are files in the folder of the run to compare after the run: entries sorted, without comments and empty
	// fields. $KUBECONFIG is the file of the run.
	kubeconfigs []string
	// unordered compares the lines of the output sorted.
	unordered bool
	// masks are replaced in output and objects, in addition to commonMasks.
	masks []mask
	// fails requires an exit code other than 0.
	fails bool
	// differs explains the results without a comparison.
	differs *difference
	// lastVersion leaves the line out for newer versions of kubectl.
	lastVersion lastVersion
}

// lastVersion is the newest minor version of kubectl with a behavior, and what a newer version does.
type lastVersion struct {
	minor int
	why   string
}

// step waits until the program has written text and then runs a kubectl line in the run's namespace, unless it is "".
type step struct{ waitFor, kubectl string }

// difference explains why results may differ: "stdout", "stderr", "code" and "effect". The test fails if all of them are
// equal.
type difference struct {
	results []string
	why     string
}

func (d *difference) covers(name string) bool { return d != nil && slices.Contains(d.results, name) }

type mask struct{ pattern, with string }

type compiledMask struct {
	pattern *regexp.Regexp
	with    string
}

// commonMasks hide values such as times, UIDs and hashes.
var commonMasks = []mask{
	{`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`, "UID"},
	{`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`, "TIME"},
	{`("?resourceVersion"?: ?)"\d+"`, `$1"RV"`},
	{`(AGE|LAST SEEN|DURATION|EXTERNAL-IP|CLUSTER-IP) *`, "$1  "},
	{`\b(\d+d)?(\d+h)?(\d+m)?\d+(s|m|h|d)(?: ago)?\b\)? *`, "AGE  "},
	{`\b10\.\d+\.\d+\.\d+\b *`, "IP  "},
	{`-[0-9a-z]{8,10}-[0-9a-z]{5}\b`, "-HASH"},
	{`-[0-9a-f]{9,10}\b`, "-HASH"},
	{`\bkubectl\b`, "anyctl"},
	{`\bInvalid argument syntax\b`, "invalid argument syntax"}, // kubectl 1.36 and 1.37
}

// anyctlProgress is what anyctl prints to stderr about commands that take longer than ten seconds.
var anyctlProgress = regexp.MustCompile(`(?m)^(?:\d+ of \d+ objects are gone, )?waiting for .*\n`)

// patterns are compiled patterns of masks by their text: the race detector makes compiling slow.
var patterns sync.Map

func compileMasks(lists ...[]mask) []compiledMask {
	var compiled []compiledMask
	for _, list := range lists {
		for _, m := range list {
			pattern, found := patterns.Load(m.pattern)
			if !found {
				pattern, _ = patterns.LoadOrStore(m.pattern, regexp.MustCompile(m.pattern))
			}
			compiled = append(compiled, compiledMask{pattern.(*regexp.Regexp), m.with})
		}
	}
	return compiled
}

func apply(masks []compiledMask, text string) string {
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return text
}
