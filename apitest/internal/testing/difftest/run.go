package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	blockSize   = 300  // operations per namespace; each block has its own kinds
	outageEvery = 3000 // operations per block with an outage
	customParts = 2    // operations on custom resources per operation on a built-in kind
	parallel    = 4    // blocks played concurrently
)

// Config configures Run.
type Config struct {
	Seed       int
	Operations int
	// WithRules draws only definitions with CEL rules, and no built-in kinds.
	WithRules bool
	// Permitted is the file of permitted differences.
	Permitted string
}

// Result has the counts of a run.
type Result struct {
	Seed        int
	Operations  int
	Counts      map[task]int // operations by class, verb and fault
	Corpus      int          // operations on custom resources of the corpus
	Restarts    int
	Compactions int
	Differences map[task]int // operations with permitted differences
	Unexplained []difference
	permissions []*permission
	failing     []*block // with unexplained differences
	pool        *pool
	classes     []string // of kinds
}

// block has operations in their own namespace.
type block struct {
	number      int
	kinds       []*kind
	operations  []Operation
	outage      bool
	differences []difference
}

// lab has two servers with the same definitions.
type lab struct {
	sandbox, double *Server
	kinds           []*kind
	stamp           string
	exclusive       sync.RWMutex // write-locked during restarts
	runs            int
	mu              sync.Mutex
}

func newLab(t testing.TB, sandbox, double *Server, p *pool, kinds []*kind) *lab {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().UnixNano()/1000%1_000_000_000, 36)
	l := &lab{sandbox: sandbox, double: double, stamp: strings.ReplaceAll(fmt.Sprintf("%06s", stamp), " ", "0")}
	l.kinds = slices.Concat(kinds, builtinKinds())
	for _, s := range []*Server{sandbox, double} {
		for _, k := range kinds {
			if k.class == "custom" {
				s.define(t, p.definitions[k.definition])
			}
		}
		s.awaitServed(t, l.kinds, "default")
	}
	return l
}

// Run draws operations, plays them on both servers and returns the differences.
func Run(t testing.TB, sandbox, double *Server, c Config) *Result {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(c.Seed), 23)) //nolint:gosec // repeatable
	p := readPool(t, c.WithRules)
	kinds := p.kinds(t, r, Double(t, nil), min(10+c.Operations/2500, 50))
	blocks := plan(r, kinds, c)
	l := newLab(t, sandbox, double, p, kinds)
	var running sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, b := range blocks {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			b.differences = l.play(t, b.kinds, b.operations, b.outage)
		})
	}
	running.Wait()
	require.False(t, t.Failed(), "a server did not respond")
	return summarize(t, c, p, blocks)
}

// plan draws the blocks.
func plan(r *rand.Rand, kinds []*kind, c Config) []*block {
	custom := tasks(r, "custom", c.Operations)
	var builtin []task
	if !c.WithRules {
		custom = custom[:c.Operations*customParts/(customParts+1)]
		builtin = tasks(r, "builtin", c.Operations-len(custom))
	}
	var blocks []*block
	count := max(1, c.Operations/blockSize)
	for i := range count {
		part := func(all []task) []task { return all[len(all)*i/count : len(all)*(i+1)/count] }
		todo := slices.Concat(part(custom), part(builtin))
		r.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
		b := &block{number: i, kinds: blockKinds(r, kinds, !c.WithRules), outage: i%(outageEvery/blockSize) == outageEvery/blockSize/2}
		b.operations = generate(r, b.kinds, todo, b.outage)
		blocks = append(blocks, b)
	}
	return blocks
}

// blockKinds draws the kinds of a block: custom kinds, at least one with a scale and a status, and built-in kinds.
func blockKinds(r *rand.Rand, custom []*kind, withBuiltin bool) []*kind {
	isScaled := func(k *kind) bool { return k.scale && k.status }
	chosen := []*kind{pick(r, custom, isScaled)}
	for len(chosen) < min(6, len(custom)) {
		if k := custom[r.IntN(len(custom))]; !slices.Contains(chosen, k) {
			chosen = append(chosen, k)
		}
	}
	if !withBuiltin {
		return chosen
	}
	all := builtinKinds()
	for _, k := range all {
		k.class = "builtin"
	}
	builtin := []*kind{pick(r, all, isScaled)}
	for len(builtin) < 5 {
		if k := all[r.IntN(len(all))]; !slices.Contains(builtin, k) {
			builtin = append(builtin, k)
		}
	}
	return append(chosen, builtin...)
}

// play plays operations on both servers in new namespaces and returns the differences. An outage excludes concurrent blocks.
func (l *lab) play(t testing.TB, kinds []*kind, operations []Operation, outage bool) []difference {
	t.Helper()
	if outage {
		l.exclusive.Lock()
		defer l.exclusive.Unlock()
	} else {
		l.exclusive.RLock()
		defer l.exclusive.RUnlock()
	}
	l.mu.Lock()
	l.runs++
	suffix := fmt.Sprintf("%s%05d", l.stamp, l.runs)
	l.mu.Unlock()
	var first, second transcript
	var both sync.WaitGroup
	both.Go(func() { first = play(t, l.sandbox, kinds, "diff"+suffix+"a", "run"+suffix+"a", operations) })
	both.Go(func() { second = play(t, l.double, kinds, "diff"+suffix+"b", "run"+suffix+"b", operations) })
	both.Wait()
	if slices.ContainsFunc(operations, func(op Operation) bool { return op.Method == methodRestart }) {
		l.sandbox.awaitServed(t, l.kinds, "default") // fills the caches of all kinds for later blocks
	}
	if t.Failed() {
		return nil
	}
	return compare(operations, first, second)
}

// summarize counts operations and removes permitted differences.
func summarize(t testing.TB, c Config, p *pool, blocks []*block) *Result {
	t.Helper()
	result := &Result{Seed: c.Seed, Counts: map[task]int{}, Differences: map[task]int{}, permissions: readPermissions(t, c.Permitted), pool: p, classes: []string{"custom"}}
	if !c.WithRules {
		result.classes = append(result.classes, "builtin")
	}
	for _, b := range blocks {
		ofCorpus := map[string]bool{}
		for _, k := range b.kinds {
			ofCorpus[k.name] = k.class == "custom" && !slices.Contains(p.own, k.definition)
		}
		for _, op := range b.operations {
			switch op.Method {
			case methodRestart:
				result.Restarts++
			case methodCompact:
				result.Compactions++
			default:
				result.Operations++
				result.Counts[task{op.Class, op.Verb, op.Fault}]++
				if ofCorpus[op.Kind] {
					result.Corpus++
				}
			}
		}
		failed := false
		for i := range b.differences {
			matched, unexplained := explain(&b.differences[i], result.permissions)
			if matched {
				op := b.differences[i].op
				result.Differences[task{op.Class, op.Verb, op.Fault}]++
			}
			if unexplained {
				failed = true
				result.Unexplained = append(result.Unexplained, b.differences[i])
			}
		}
		if failed {
			result.failing = append(result.failing, b)
		}
	}
	return result
}
