package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/internal/testing/client"
)

func TestAnyctl_Inventory(t *testing.T) {
	o := newPrograms(t)
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, whereObjects)
	for _, c := range []struct {
		line, stdout, stderr string
		fails                bool
	}{
		{"inventory -n $NS", `^OBJECT +AGE\nconfigmap/blue +\S+\n(?s:.*)deployment.apps/large +\S+\n`, `^$`, false},
		{"inventory -n $NS -l app=web --no-headers --show-labels", `^configmap/blue +\S+ +app=web\nconfigmap/red +\S+ +app=web\n`, `^$`, false},
		{"inventory -n $NS --where '.data.color == \"red\"' -o name", `^configmap/kept\nconfigmap/red\n$`, `^$`, false},
		{"inventory -n $NS -l app=web -o jsonpath='{.items[*].metadata.uid}' --neat", `^$`, `^$`, false},
		{"inventory -n $NS -l none=such", `^$`, "^No resources found\n$", false},
		{"inventory -n $NS --made-by-controllers -o name", `configmap/kube-root-ca.crt\n`, `^$`, false},
		{"inventory -A -o name", `(?s)namespace/default\n`, `^$`, false},
		{"inventory -n $NS --context limited", `^`, `error: you may not list .*configmaps`, true},
		{"inventory -n $NS pods", `^$`, `^error: unknown command "pods"`, true},
	} {
		r := o.anyctl.run(t, &oracleCase{line: c.line}, o.fixtures, o.kubectl)
		assert.Regexp(t, c.stdout, r.stdout, c.line)
		assert.Regexp(t, c.stderr, r.stderr, c.line)
		assert.Equal(t, c.fails, r.code != 0, "%s: exit code %d", c.line, r.code)
	}
}
