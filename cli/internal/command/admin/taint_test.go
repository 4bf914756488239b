package admin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseTaints(t *testing.T) {
	for _, c := range []struct {
		texts          []string
		added, removed []taint
		err            string
	}{
		{texts: []string{"a=b:NoSchedule", "c:NoExecute"}, added: []taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}}},
		{texts: []string{"a-", "b:NoSchedule-", "c=d:NoExecute-"}, removed: []taint{{Key: "a"}, {Key: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}}},
		{texts: []string{"a=b"}, err: "invalid taint spec: a=b"},
		{texts: []string{"a"}, err: "invalid taint spec: a"},
		{texts: []string{"a=b:NoSchedule:x"}, err: "invalid taint spec"},
		{texts: []string{"a=b=c:NoSchedule"}, err: "invalid taint spec"},
		{texts: []string{"a=b c:NoSchedule"}, err: "invalid taint spec"},
		{texts: []string{"a=b:Never"}, err: "invalid taint effect: Never, unsupported taint effect"},
		{texts: []string{"a=b:NoSchedule", "a=c:NoSchedule"}, err: "duplicated taints with the same key and effect: {a c NoSchedule <nil>}"},
	} {
		added, removed, err := parseTaints(c.texts)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.texts)
			continue
		}
		require.NoError(t, err, c.texts)
		assert.Equal(t, c.added, added, c.texts)
		assert.Equal(t, c.removed, removed, c.texts)
	}
}

func TestTaintOptions_Change(t *testing.T) {
	old := []taint{{Key: "a", Value: "1", Effect: "NoSchedule"}, {Key: "a", Value: "2", Effect: "NoExecute"}, {Key: "b", Effect: "NoSchedule"}}
	for name, c := range map[string]struct {
		texts     []string
		overwrite bool
		operation string
		keys      []string
		err       string
	}{
		"added":             {texts: []string{"c:NoSchedule"}, operation: "tainted", keys: []string{"c:NoSchedule", "a=1:NoSchedule", "a=2:NoExecute", "b:NoSchedule"}},
		"removed by key":    {texts: []string{"a-"}, operation: "untainted", keys: []string{"b:NoSchedule"}},
		"removed by effect": {texts: []string{"a:NoExecute-"}, operation: "untainted", keys: []string{"a=1:NoSchedule", "b:NoSchedule"}},
		"both":              {texts: []string{"c:NoSchedule", "b-"}, operation: "modified", keys: []string{"c:NoSchedule", "a=1:NoSchedule", "a=2:NoExecute"}},
		"overwritten":       {texts: []string{"a=3:NoSchedule"}, overwrite: true, operation: "modified", keys: []string{"a=3:NoSchedule", "a=2:NoExecute", "b:NoSchedule"}},
		"missing":           {texts: []string{"none-"}, err: `taint "none" not found`},
		"missing effect":    {texts: []string{"b:NoExecute-"}, err: `taint "b:NoExecute" not found`},
	} {
		o := &taintOptions{overwrite: c.overwrite}
		var err error
		o.added, o.removed, err = parseTaints(c.texts)
		require.NoError(t, err, name)
		operation, changed, err := o.change(old)
		if c.err != "" {
			require.EqualError(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		var keys []string
		for _, one := range changed {
			keys = append(keys, one.String())
		}
		assert.Equal(t, c.operation, operation, name)
		assert.Equal(t, c.keys, keys, name)
	}
}

func TestUncovered(t *testing.T) {
	pods := func(verbs ...string) rule {
		return rule{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}
	}
	for name, c := range map[string]struct {
		owners, rules []rule
		missing       int
	}{
		"equal":               {[]rule{pods("get", "list")}, []rule{pods("list", "get")}, 0},
		"in two rules":        {[]rule{pods("get"), pods("list")}, []rule{pods("get", "list")}, 0},
		"another verb":        {[]rule{pods("get")}, []rule{pods("get", "watch", "list")}, 2},
		"all verbs":           {[]rule{pods("*")}, []rule{pods("get", "escalate")}, 0},
		"all verbs missing":   {[]rule{pods("get")}, []rule{pods("*")}, 1},
		"names":               {[]rule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a"}}}, []rule{pods("get")}, 1},
		"one name":            {[]rule{pods("get")}, []rule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a", "b"}}}, 0},
		"subresource":         {[]rule{{Verbs: []string{"get"}, APIGroups: []string{"*"}, Resources: []string{"*/scale"}}}, []rule{{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments/scale", "deployments"}}}, 1},
		"paths":               {[]rule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz/*"}}}, []rule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz/a", "/metrics"}}}, 1},
		"path is no resource": {[]rule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}, []rule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}, 1},
	} {
		assert.Len(t, uncovered(c.owners, c.rules), c.missing, name)
	}
}
