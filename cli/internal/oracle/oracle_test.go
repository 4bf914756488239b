package oracle

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// oracle has the two programs and a client for setup and effects.
type oracle struct {
	kubectl, anyctl *program
	client          *dynamic.Client
	fixtures        string // the namespace of the fixtures
}

func TestKubectl_SameOutputCodeEffect(t *testing.T) {
	o := newOracle(t)
	for _, c := range allCases() {
		t.Run(strings.ReplaceAll(c.line, "/", ":"), func(t *testing.T) {
			t.Parallel()
			o.compare(t, &c)
		})
	}
}

// allCases returns the table.
func allCases() []oracleCase {
	return slices.Concat(getCases(), formatCases(), strategicCases(), configCases(), changeCases(), podCases(), inspectCases(), clusterCases(), debugCases(), writeCases())
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	kubeconfig := cluster.Kubeconfig(t)
	cluster.NeedComponents(t, "kube-controller-manager", "kube-scheduler", "nodes")
	o := &oracle{
		kubectl: &program{path: kubectlPath(t), home: t.TempDir(), kubeconfig: kubeconfig, kubectl: kubectlPath(t)},
		anyctl:  &program{path: buildAnyctl(t), home: t.TempDir(), kubeconfig: kubeconfig, kubectl: kubectlPath(t)},
		client:  client.Connect(t, "admin"),
	}
	o.fixtures = client.NewNamespace(t, o.client)
	o.createFixtures(t)
	o.createNodes(t)
	return o
}

// kubectlEnv names a kubectl of another version than the cluster's.
const kubectlEnv = "ANYKIND_ORACLE_KUBECTL"

// kubectlPath returns the kubectl to compare with: the cluster's, unless kubectlEnv is set.
func kubectlPath(t *testing.T) string {
	t.Helper()
	return cmp.Or(os.Getenv(kubectlEnv), cluster.Kubectl(t))
}

// buildAnyctl returns the path of anyctl. It is built once: linking takes most of the time.
func buildAnyctl(t *testing.T) string {
	t.Helper()
	path, err := builtAnyctl()
	require.NoError(t, err)
	return path
}

var builtAnyctl = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "anyctl-")
	if err != nil {
		return "", err
	}
	buildFolder = folder
	path := filepath.Join(folder, "anyctl")
	output, err := exec.Command("go", "build", "-o", path, "github.com/anykind/anykind/cli/cmd/anyctl").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build anyctl: %w\n%s", err, output)
	}
	return path, err
})

// buildFolder is removed at the end.
var buildFolder string

func (o *oracle) compare(t *testing.T, c *oracleCase) {
	t.Helper()
	if c.lastVersion.minor > 0 && o.kubectl.minor(t) > c.lastVersion.minor {
		t.Skip(c.lastVersion.why)
	}
	want := o.runIn(t, c, o.kubectl)
	got := o.runIn(t, c, o.anyctl)
	assert.Equal(t, c.fails, want.code != 0, "kubectl's exit code is %d; stderr:\n%s", want.code, want.stderr)
	assertSame(t, "", c.differs, &want, &got)
}

// assertSame compares the results of kubectl and anyctl. step begins each message.
func assertSame(t *testing.T, step string, differs *difference, want, got *result) {
	t.Helper()
	compared.Add(1)
	different := differs == nil
	for _, part := range []struct{ name, want, got string }{
		{"stdout", want.stdout, got.stdout},
		{"stderr", want.stderr, got.stderr},
		{"code", fmt.Sprint(want.code), fmt.Sprint(got.code)},
		{"effect", want.effect, got.effect},
	} {
		if differs.covers(part.name) {
			different = different || part.want != part.got
			continue
		}
		assert.Equal(t, part.want, part.got, "%s%s of kubectl (expected) and anyctl (actual)", step, part.name)
	}
	assert.True(t, different, "%sresults are equal, but the case explains a difference: %+v", step, differs)
}

// runIn prepares a namespace, runs the line, and returns the masked result.
func (o *oracle) runIn(t *testing.T, c *oracleCase, p *program) result {
	t.Helper()
	namespace := o.fixtures
	if !c.readOnly {
		namespace = client.NewKeptNamespace(t, o.client)
	}
	if len(c.ready) > 0 || strings.Contains(c.setup, "kind: Pod\n") {
		o.waitExists(t, namespace, "serviceaccounts/default") // without it the server rejects pods
	}
	o.apply(t, namespace, c.setup)
	o.applyAs(t, namespace, "oracle-other", c.otherSetup)
	for _, name := range c.ready {
		o.waitReady(t, namespace, name)
	}
	if strings.HasPrefix(c.line, "diff ") && strings.Contains(c.line, "--show-managed-fields") {
		time.Sleep(time.Second) // the times in managedFields have seconds: that of a change differs from that of the setup
	}
	r := p.run(t, c, namespace, o.kubectl)
	r.effect += o.effect(t, c, namespace)
	if p == o.anyctl {
		r.stderr = anyctlProgress.ReplaceAllString(r.stderr, "")
	}

	masks := compileMasks([]mask{{`\b` + namespace + `\b *`, "NAMESPACE  "}}, c.masks, commonMasks)
	for _, text := range []*string{&r.stdout, &r.stderr, &r.effect} {
		*text = apply(masks, *text)
		if c.unordered {
			*text = sortedLines(*text)
		}
	}
	return r
}

func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func (o *oracle) apply(t *testing.T, namespace, manifest string) {
	t.Helper()
	o.applyAs(t, namespace, "oracle", manifest)
}

// applyAs applies objects. New cluster-scoped objects are deleted at the end of the test.
func (o *oracle) applyAs(t *testing.T, namespace, manager, manifest string) {
	t.Helper()
	decoder := unstructured.NewYAMLDecoder(strings.NewReader(strings.ReplaceAll(manifest, "$NS", namespace)))
	admin := o.client.WithDefaults(&dynamic.Defaults{Namespace: namespace, FieldManager: manager})
	for object, err := range admin.ForObjects(t.Context(), decoder.All()) {
		require.NoError(t, err)
		if !object.Resource.APIResource().Namespaced {
			_, err = object.Resource.Get(t.Context(), object.Object.GetName(), nil)
			if apierrors.IsNotFound(err) {
				if object.Object.GetKind() == "CustomResourceDefinition" {
					o.waitDeletedAtEnd(t, object.Resource, object.Object.GetName())
				}
				client.DeleteAtEnd(t, object.Resource, object.Object.GetName())
			} else {
				require.NoError(t, err)
			}
		}
		_, err = object.Resource.Apply(t.Context(), object.Object, &metav1.ApplyOptions{Force: true})
		require.NoError(t, err)
		if object.Object.GetKind() == "CustomResourceDefinition" {
			_, err = object.Resource.Wait(t.Context(), object.Object.GetName(), dynamic.Condition("Established"))
			require.NoError(t, err)
		}
	}
}

// waitDeletedAtEnd waits for the finalizers of a definition, which delete its objects: meanwhile the next test cannot create it. Then it
// waits for discovery: the name of the resource may be that of a resource of the next test. The finalizer waits up to a minute for the
// objects, and then begins again.
func (o *oracle) waitDeletedAtEnd(t *testing.T, resource *dynamic.Resource, name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		_, err := resource.Wait(ctx, name, dynamic.Deleted())
		assert.NoError(t, err)
		_, err = o.client.Discovery().WaitForSnapshot(ctx, func(s *discovery.Snapshot) bool {
			for resource := range s.Resources() {
				if resource.GVR.GroupResource().String() == name {
					return false
				}
			}
			return true
		})
		assert.NoError(t, err)
	})
}

func (o *oracle) waitReady(t *testing.T, namespace, pair string) {
	t.Helper()
	kind, name, _ := strings.Cut(pair, "/")
	_, err := client.Resource(t, o.client, kind).Namespace(namespace).Wait(t.Context(), name, dynamic.Ready())
	require.NoError(t, err)
}

// waitExists waits for an object of a controller.
func (o *oracle) waitExists(t *testing.T, namespace, pair string) {
	t.Helper()
	kind, name, _ := strings.Cut(pair, "/")
	_, err := client.Resource(t, o.client, kind).Namespace(namespace).Wait(t.Context(), name, dynamic.Exists())
	require.NoError(t, err)
}

// effect returns the objects of a case as YAML, without managed fields, resourceVersion and UID.
func (o *oracle) effect(t *testing.T, c *oracleCase, namespace string) string {
	t.Helper()
	var text strings.Builder
	for _, what := range c.effect {
		kind, name, _ := strings.Cut(what, "/")
		name = strings.ReplaceAll(name, "$NS", namespace)
		resource := client.Resource(t, o.client, kind)
		if resource.APIResource().Namespaced {
			resource = resource.Namespace(namespace)
		}
		for obj, err := range resource.Named(name).List(t.Context(), nil) {
			require.NoError(t, err)
			text.WriteString(normalized(t, obj))
		}
		text.WriteString("---\n")
	}
	return text.String()
}

func normalized(t *testing.T, obj *unstructured.Object) string {
	t.Helper()
	obj.SetManagedFields(nil)
	obj.SetResourceVersion("")
	obj.SetUID(types.UID(""))
	data, err := unstructured.EncodeYAML(obj)
	require.NoError(t, err)
	return string(data)
}

// compared counts the compared command lines.
var compared atomic.Int64

// minCompared is the least number of lines that a run of all tests compares.
const minCompared = 900

// parallelCases is the number of cases at a time, unless -parallel says more: they wait for controllers and timeouts as often as
// they compute.
const parallelCases = 4

func TestMain(m *testing.M) {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if n, err := strconv.Atoi(parallel.String()); err == nil && n < parallelCases {
		_ = parallel.Set(strconv.Itoa(parallelCases))
	}
	code := m.Run()
	if n := compared.Load(); n > 0 {
		fmt.Println("compared with kubectl:", n, "command lines")
		if flag.Lookup("test.run").Value.String() == "" && n < minCompared {
			fmt.Println("FAIL: fewer than", minCompared)
			code = max(code, 1)
		}
	}
	if buildFolder != "" {
		_ = os.RemoveAll(buildFolder)
	}
	os.Exit(code)
}
