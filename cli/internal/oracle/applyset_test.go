package oracle

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

func TestApplySet_SameAsKubectl(t *testing.T) {
	o := newSetOracle(t)
	for _, c := range applySetCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o.compareSets(t, &c)
		})
	}
}

// newSetOracle returns an oracle without fixtures.
func newSetOracle(t *testing.T) *oracle {
	t.Helper()
	kubeconfig := cluster.Kubeconfig(t)
	o := &oracle{
		kubectl: &program{path: kubectlPath(t), home: t.TempDir(), kubeconfig: kubeconfig, kubectl: kubectlPath(t)},
		anyctl:  &program{path: buildAnyctl(t), home: t.TempDir(), kubeconfig: kubeconfig, kubectl: kubectlPath(t)},
		client:  client.Connect(t, "admin"),
	}
	o.fixtures = client.NewNamespace(t, o.client)
	o.apply(t, o.fixtures, gadgets)
	return o
}

// compareSets runs the steps with kubectl and anyctl, and compares output and objects after each.
func (o *oracle) compareSets(t *testing.T, c *setCase) {
	t.Helper()
	names := map[*program]string{o.kubectl: client.NewKeptNamespace(t, o.client), o.anyctl: client.NewKeptNamespace(t, o.client)}
	if c.hasRecord {
		o.createRecord(t, names[o.kubectl], "kubectl")
		o.createRecord(t, names[o.anyctl], "anykind")
	}
	for i, step := range c.steps {
		want := o.runSetStep(t, c, &step, o.kubectl, names[o.kubectl])
		got := o.runSetStep(t, c, &step, o.anyctl, names[o.anyctl])
		assert.Equal(t, step.fails, want.code != 0, "step %d: kubectl's exit code is %d; stderr:\n%s", i+1, want.code, want.stderr)
		assertSame(t, fmt.Sprintf("step %d: ", i+1), step.differs, &want, &got)
	}
}

// createRecord creates the objects of record. kubectl confirms the ID.
func (o *oracle) createRecord(t *testing.T, namespace, tool string) {
	t.Helper()
	parent := applyset.Parent{Kind: schema.GroupKind{Group: "oracle.example.com", Kind: "Record"}, Name: namespace + "-set"}
	o.applyAs(t, namespace, tool+"-applyset", strings.NewReplacer("$ID", parent.ID(), "$TOOL", tool).Replace(record))
}

func (o *oracle) runSetStep(t *testing.T, c *setCase, step *setStep, p *program, namespace string) result {
	t.Helper()
	if step.before != "" {
		o.kubectl.simple(t, step.before, namespace)
	}
	parent := c.parent
	if parent == "" {
		parent = "set"
	}
	command := "apply --server-side --prune --applyset=" + parent
	if !strings.HasPrefix(parent, "record") { // cluster-scoped
		command += " -n $NS"
	}
	one := &oracleCase{
		line:  strings.ReplaceAll(step.line, "$APPLY", command),
		files: map[string]string{}, env: []string{"KUBECTL_APPLYSET=true"},
	}
	for i := 0; i < len(step.files); i += 2 {
		one.files[step.files[i]] = step.files[i+1]
		one.stdin = step.files[i+1]
	}
	r := p.run(t, one, namespace, o.kubectl)
	r.effect = o.setEffect(t, namespace)
	masks := compileMasks([]mask{{`\b` + namespace + `\b`, "NAMESPACE"}, {`applyset-[\w-]+-v1`, "SETID"}}, setMasks, commonMasks)
	for _, text := range []*string{&r.stdout, &r.stderr, &r.effect} {
		*text = apply(masks, *text)
	}
	r.stdout = sortedLines(r.stdout)
	return r
}

// setMasks hide the differences between an object and its server-side apply by another manager. anyctl sends no request for an
// unchanged object, and says so.
var setMasks = []mask{{`(?m) unchanged( \(server dry run\))?$`, " serverside-applied$1"}}

// setKinds are the kinds of applySetCases.
var setKinds = []string{
	"configmaps", "secrets", "services", "serviceaccounts", "deployments.apps", "jobs.batch", "roles.rbac.authorization.k8s.io",
	"clusterrolebindings.rbac.authorization.k8s.io", "gadgets.oracle.example.com",
	"records.oracle.example.com",
}

// setEffect returns the objects whose namespace or name begins with a namespace, as YAML.
func (o *oracle) setEffect(t *testing.T, namespace string) string {
	t.Helper()
	var text strings.Builder
	for _, kind := range setKinds {
		resource := client.Resource(t, o.client, kind).AllNamespaces()
		for obj, err := range resource.List(t.Context(), &metav1.ListOptions{}) {
			require.NoError(t, err)
			isOwn := strings.HasPrefix(obj.GetNamespace()+obj.GetName(), namespace)
			isControllers := obj.GetName() == "kube-root-ca.crt" || kind == "serviceaccounts" && obj.GetName() == "default"
			if isOwn && !isControllers {
				text.WriteString(normalizedMember(t, obj) + "---\n")
			}
		}
	}
	return text.String()
}

// normalizedMember returns an object without fields of single runs, and a parent without the record of the tool.
func normalizedMember(t *testing.T, obj *unstructured.Object) string {
	t.Helper()
	annotations := maps.Clone(obj.GetAnnotations())
	maps.DeleteFunc(annotations, func(name, _ string) bool {
		return name == "applyset.kubernetes.io/tooling" || name == "applyset.anykind.dev/lock" || name == "deployment.kubernetes.io/revision"
	})
	obj.SetAnnotations(annotations)
	if kind := obj.GetKind(); kind == "Deployment" || kind == "Job" { // their controllers write at any time
		delete(obj.Object, "status")
	}
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		_, err := unstructured.Delete(obj, "spec", field)
		require.NoError(t, err)
	}
	obj.SetCreationTimestamp(metav1.Time{})
	return normalized(t, obj)
}
