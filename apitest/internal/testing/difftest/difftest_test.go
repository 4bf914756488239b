package difftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	seedEnv  = "ANYKIND_APITEST_SEED"
	countEnv = "ANYKIND_APITEST_OPERATIONS" // of each verb, on custom and on built-in kinds each
)

func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return value
}

// scenario is a set of kinds and operations on them.
type scenario struct {
	definitions []string
	kinds       []*kind
	operations  []Operation
}

// draw returns the scenario of a seed.
func draw(t testing.TB, seed, count int) scenario {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(seed), 19)) //nolint:gosec // It must be repeatable.
	custom, definitions := customKinds(t, r, 10)
	builtin := builtinKinds()
	for _, k := range builtin {
		k.class = "builtin"
	}
	s := scenario{definitions: definitions, kinds: slices.Concat(custom, builtin)}
	s.operations = slices.Concat(generate(r, custom, count), nil)
	first := len(s.operations)
	for _, op := range generate(r, builtin, count) {
		s.operations = append(s.operations, shift(op, first))
	}
	return s
}

// shift changes references to operations by the number of operations before them.
func shift(op Operation, by int) Operation {
	before, rest, found := strings.Cut(op.Query, "${continue:")
	if !found {
		return op
	}
	index, after, _ := strings.Cut(rest, "}")
	number, err := strconv.Atoi(index)
	if err != nil {
		return op
	}
	op.Query = fmt.Sprintf("%s${continue:%d}%s", before, number+by, after)
	return op
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// prepare creates the definitions and the namespaces, and returns the resourceVersion after it. The definitions are deleted when
// the test ends.
func prepare(t testing.TB, s *server, definitions []string, namespace string) (version int64) {
	t.Helper()
	for _, text := range definitions {
		answer := s.do(t, http.MethodPost, definitionsPath, jsonType, "", text)
		require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, answer.Status, answer.Body)
	}
	for _, name := range []string{namespace, namespace + "-empty"} {
		answer := s.do(t, http.MethodPost, "/api/v1/namespaces", jsonType, "", `{"metadata":{"name":"`+name+`"}}`)
		require.Equal(t, http.StatusCreated, answer.Status, answer.Body)
		var created struct {
			Metadata struct {
				ResourceVersion int64 `json:"resourceVersion,string"`
			} `json:"metadata"`
		}
		require.NoError(t, json.Unmarshal([]byte(answer.Body), &created))
		version = created.Metadata.ResourceVersion
	}
	return version
}

// awaitServed waits until the kinds are served: a real server takes a moment after a definition is created.
func awaitServed(t testing.TB, s *server, kinds []*kind, namespace string) {
	t.Helper()
	for _, k := range kinds {
		for _, version := range append([]string{k.version}, k.versions...) {
			path := strings.ReplaceAll(k.collection(version), "${ns}", namespace)
			require.Eventually(t, func() bool { return s.do(t, http.MethodGet, path, "", "", "").Status == http.StatusOK },
				20*time.Second, 50*time.Millisecond, path)
		}
	}
}

// run plays a scenario on a server. The suffix tells runs on one server apart; it is one character.
func run(t testing.TB, s *server, scenario scenario, suffix string) transcript {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().UnixNano()%1_000_000_000, 36)
	namespace, prefix := fmt.Sprintf("diff%07s%s", stamp, suffix), fmt.Sprintf("run%07s%s", stamp, suffix)
	namespace, prefix = strings.ReplaceAll(namespace, " ", "0"), strings.ReplaceAll(prefix, " ", "0")
	began := prepare(t, s, scenario.definitions, namespace)
	awaitServed(t, s, scenario.kinds, namespace)
	script := play(t, s, namespace, prefix, scenario.operations)
	script.began = began
	return script
}

// describe returns the differences with an example of each kind, the frequent ones first.
func describe(t *testing.T, scenario scenario, differences []difference) string {
	t.Helper()
	counts := map[string]int{}
	examples := map[string]string{}
	indexes := regexp.MustCompile(`^(body|events)(\.items\[\d+\]|\[\d+\]\.object)|\[\d+\]`)
	for _, one := range differences {
		for _, line := range one.lines {
			place, _, _ := strings.Cut(indexes.ReplaceAllString(line, ""), ": ")
			signature := one.op.Class + " " + one.op.Kind + " " + place
			counts[signature]++
			if examples[signature] == "" {
				examples[signature] = fmt.Sprintf("operation %d: %s %s?%s %s\n\tbody %s\n\t%s", one.index, one.op.Method, one.op.Path, one.op.Query, one.op.ContentType, one.op.Body, line)
			}
		}
	}
	signatures := sortedKeys(counts)
	slices.SortStableFunc(signatures, func(a, b string) int { return counts[b] - counts[a] })
	var text strings.Builder
	for i, signature := range signatures {
		if i == number(t, "ANYKIND_APITEST_SHOW", 40) {
			fmt.Fprintf(&text, "and %d more kinds of differences\n", len(signatures)-i)
			break
		}
		fmt.Fprintf(&text, "%d × %s\n\t%s\n", counts[signature], signature, examples[signature])
	}
	return fmt.Sprintf("%d operations of %d differ:\n%s", len(differences), len(scenario.operations), text.String())
}

func logCounts(t *testing.T, operations []Operation) {
	t.Helper()
	counts := map[string]int{}
	for _, op := range operations {
		counts[op.Class+" "+op.Verb]++
	}
	var text []string
	for _, key := range sortedKeys(counts) {
		text = append(text, fmt.Sprintf("%s %d", key, counts[key]))
	}
	t.Logf("%d operations: %s", len(operations), strings.Join(text, ", "))
}

// TestDifferential_SandboxAgainstItself proves that what the comparison reports is not noise.
func TestDifferential_SandboxAgainstItself(t *testing.T) {
	sandbox := connect(t, cluster.Kubeconfig(t))
	scenario := draw(t, number(t, seedEnv, 1), number(t, countEnv, 30))
	logCounts(t, scenario.operations)
	first := run(t, sandbox, scenario, "a")
	second := run(t, sandbox, scenario, "b")
	differences := compare(scenario.operations, first, second)
	assert.Empty(t, differences, describe(t, scenario, differences))
}
