package oracle

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// TestDescribe_HasFactsOfKubectl requires every value of kubectl's descriptions in anyctl's.
func TestDescribe_HasFactsOfKubectl(t *testing.T) {
	cluster.NeedComponents(t, "kube-controller-manager", "kube-scheduler", "nodes")
	o := newSetOracle(t)
	namespace := client.NewNamespace(t, o.client)
	o.waitExists(t, namespace, "serviceaccounts/default")
	o.waitExists(t, namespace, "configmaps/kube-root-ca.crt")
	o.apply(t, namespace, describedObjects)
	for _, pair := range []string{"deploy/web", "sts/db", "ds/agent", "pod/full", "rs/set"} {
		o.waitReady(t, namespace, pair)
	}
	o.waitExists(t, namespace, "resourcequotas/quota")
	for _, pair := range describedPairs {
		t.Run(strings.ReplaceAll(pair, "/", ":"), func(t *testing.T) {
			t.Parallel()
			line := "describe --show-events=false " + strings.ReplaceAll(pair, "$NS", namespace)
			var missing []string
			var got, want result
			for range 5 {
				want = o.kubectl.run(t, &oracleCase{line: line}, namespace, nil)
				require.Zero(t, want.code, want.stderr)
				got = o.anyctl.run(t, &oracleCase{line: line}, namespace, nil)
				require.Zero(t, got.code, got.stderr)
				if missing = missingFacts(t, pair, want.stdout, got.stdout); len(missing) == 0 {
					return
				}
				time.Sleep(2 * time.Second) // a controller may have changed the status in between, such as the numbers of a quota
			}
			t.Errorf("no %q in:\n%s\nkubectl:\n%s", missing, got.stdout, want.stdout)
		})
	}
}

// missingFacts returns the values of kubectl's description that anyctl's does not have.
func missingFacts(t *testing.T, pair, kubectl, anyctl string) (missing []string) {
	t.Helper()
	values := facts(kubectl)
	assert.Greater(t, len(values), 1)
	found := map[string]bool{}
	for _, word := range words(anyctl) {
		found[word] = true
	}
	for _, value := range values {
		if !found[value] && !isAccepted(pair, value) {
			missing = append(missing, value)
		}
	}
	return missing
}

var (
	labelPattern = regexp.MustCompile(`^\s*(- )?([\w.()/\- ]+):(\s+|$)`)
	rulePattern  = regexp.MustCompile(`^[\s=-]*$`)
	wordPattern  = regexp.MustCompile(`[\s,;|()\[\]{}"'=:/%]+`)
	timePattern  = regexp.MustCompile(`(\d{4}-\d\d-\d\d)t(\d\d:\d\d:\d\d)z`)
	agePattern   = regexp.MustCompile(`^(\d+[dhms]+)+$`)
)

// newNames are the names of kubectl 1.37 for those of kubectl 1.36.
var newNames = strings.NewReplacer("#success=", "successthreshold=", "#failure=", "failurethreshold=")

// words returns the words of a text in lower case. The parts of a time are words.
func words(text string) (all []string) {
	for _, word := range wordPattern.Split(newNames.Replace(timePattern.ReplaceAllString(strings.ToLower(text), "$1 $2")), -1) {
		if word = strings.Trim(word, "."); word != "" {
			all = append(all, word)
		}
	}
	return all
}

// facts returns the words of the values of a description: without labels, headers of tables, ages, placeholders of missing fields and
// words of the layout.
func facts(description string) (values []string) {
	lines := strings.Split(description, "\n")
	for i, line := range lines {
		isHeader := i+1 < len(lines) && strings.Contains(lines[i+1], "---") && rulePattern.MatchString(lines[i+1])
		if isHeader || rulePattern.MatchString(line) {
			continue
		}
		for _, word := range words(labelPattern.ReplaceAllString(line, "")) {
			isPlaceholder := strings.HasPrefix(word, "<") || strings.HasSuffix(word, ">")
			if !isPlaceholder && !agePattern.MatchString(word) && !strings.Contains(layoutWords, " "+word+" ") {
				values = append(values, word)
			}
		}
	}
	return values
}

// layoutWords are words of kubectl's layouts.
const layoutWords = " reference to a the same namespace volume populated by temporary directory that shares pod pod's lifetime bare host " +
	"contains injected data from multiple sources is when max skew exceeded for selector current desired total terminates mount on " +
	"lasts of i.e overcommitted seconds value period traffic restricted destination active ready succeeded running waiting failed " +
	"contain an s binarydata in "

// accepted are values of kubectl that anyctl does not have.
var accepted = []struct{ pair, value, why string }{
	{`.`, `^rw[ox]|^rox$`, "access modes have their full names"},
	{`^ingress/`, `^(error|services|not|found)$`, "a missing service has a different text"},
	{`^(gadget|lease)/`, `^\d{4}-\d\d-\d\d$|^\d+$|^[0-9a-f-]{36}$`, "ages replace times; UID and resourceVersion are those of get -o yaml"},
	{`^networkpolicy/`, `^\d+$|^\d{4}-\d\d-\d\d$|^\+0000$|^utc$`, "the creation has a zone, as kubectl writes it for other kinds"},
	{`^networkpolicy/`, `^32000-32768$|^not$`, "port and endPort are fields of their own, and a missing rule has no text"},
	{`^(pv|priorityclass|storageclass)/`, `^(false|no)$`, "the object does not have the field"},
	{`^pvc/`, `^(mon|01|jan|0001|00)$`, "kubectl 1.37 prints the zero time for a missing one"},
	{`^role/`, `^deployments.apps$`, "resource and group are fields of their own"},
}

func isAccepted(pair, value string) bool {
	for _, a := range accepted {
		if regexp.MustCompile(a.pair).MatchString(pair) && regexp.MustCompile(a.value).MatchString(value) {
			return true
		}
	}
	return false
}

var describedPairs = []string{
	"pod/full", "deploy/web", "rs/set", "sts/db", "ds/agent", "job/once", "cronjob/nightly", "svc/web", "ingress/shop", "pvc/disk", "pv/$NS-disk",
	"node/$NS-node", "ns/$NS", "cm/settings", "cm/binary", "secret/password", "sa/default", "role/reader", "rolebinding/readers",
	"clusterrole/$NS-reader", "clusterrolebinding/$NS-readers", "hpa/web", "pdb/web", "networkpolicy/front", "storageclass/$NS-fast",
	"quota/quota", "limits/limits", "gadget/applied", "priorityclass/$NS-high", "lease/lock", "endpointslice/manual",
}
