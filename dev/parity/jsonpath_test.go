package parity_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	theirs "k8s.io/client-go/util/jsonpath"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	ours "github.com/anykind/anykind/unstructured/jsonpath"
)

const jsonpathData = `{"kind":"List","apiVersion":"v1","count":3,"ratio":0.5,"big":12345678,"million":1000000.5,"none":null,"yes":true,"empty":[],"text":"a<b","blank":"","numbers":[0,1,2,3,4],"lists":[[1],[],[2]],
"matrix":[[1,2],[3],[4,5]],"nested":{"b":{"name":"x"},"a":{"name":"y","list":[{"name":"z"}]}},
"items":[
{"kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web","example.com/tier":"front"}},"spec":{"nodeName":"n1","replicas":1,"containers":[{"name":"app","image":"web:1","ports":[{"containerPort":80},{"containerPort":443}]},{"name":"log","image":"log:2"}]},"status":{"ready":true,"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}},
{"kind":"Pod","metadata":{"name":"web-1","namespace":"shop","labels":{"app":"web"}},"spec":{"nodeName":"n2","replicas":2,"containers":[{"name":"app","image":"web:2"}]},"status":{"ready":false,"phase":"Pending","conditions":[{"type":"Ready","status":"False"}]}},
{"kind":"Service","metadata":{"name":"db","namespace":"data","labels":{"app":"db"}},"spec":{"replicas":3,"containers":[{"name":"db","image":"pg"}]},"status":{"ready":true,"phase":"Running","conditions":[{"type":"Ready","status":"True"},{"type":"Old","status":"True"}]}}]}`

// jsonpathCases are templates that both implementations must evaluate alike; errors must be errors in both.
var jsonpathCases = []string{
	``, `plain`, `hello {.kind}!`, `{.kind}`, `{$.kind}`, `{@.kind}`, `{ .kind }`, `{.kind}{.apiVersion}`, `{@}`, `{}`, `{$}`, `{.}`, `{ @ }`,
	`{.count}`, `{.ratio}`, `{.big}`, `{.million}`, `{.none}`, `{.yes}`, `{.text}`, `{.blank}`, `{.empty}`, `{.nested}`, `{.numbers}`,
	`{.nested.a.list}`, `{.nested.a.list[0].name}`, `{.missing}`, `{.missing.deeper}`, `{.kind.deeper}`, `{.none.deeper}`, `{.missing[0]}`,
	`{.items[0].metadata.name}`, `{.items[*].metadata.name}`, `{.items[-1].metadata.name}`, `{.items[-3].metadata.name}`, `{.items[0:2].metadata.name}`,
	`{.items[1:].metadata.name}`, `{.items[:1].metadata.name}`, `{.items[::2].metadata.name}`, `{.items[:].kind}`, `{.items[].kind}`, `{.items[0,2].metadata.name}`,
	`{.items[ 0 , 2 ].metadata.name}`, `{.items[*]['kind','metadata.name']}`, `{.items[0]['kind']}`, `{.items[0].metadata['name','namespace']}`,
	`{.items[0].metadata.labels.example\.com/tier}`, `{.items[0].metadata.labels['example\.com/tier']}`, `{.items[0].metadata.labels['example.com/tier']}`,
	`{.numbers[0]}`, `{.numbers[-2:]}`, `{.numbers[1:4:2]}`, `{.numbers[-4:-1]}`, `{.numbers[2:2]}`, `{.numbers[3:1]}`, `{.numbers[9]}`, `{.numbers[-9]}`, `{.numbers[0:9]}`, `{.numbers[9:]}`, `{.numbers[0:]}`,
	`{.numbers[::0]}`, `{.numbers[::-1]}`, `{.numbers[:0]}`, `{.numbers[-1]}`, `{.numbers[-]}`, `{.numbers[a]}`, `{.numbers[1:2:3:4]}`, `{.numbers["0"]}`, `{.numbers[99999999999999999999]}`, `{.numbers[*]}`, `{.empty[*]}`, `{.empty[0]}`, `{.empty[0:0]}`,
	`{.matrix[*][0]}`, `{.matrix[*][*]}`, `{.matrix[*][1]}`, `{.kind[0]}`, `{.none[0]}`, `{.none[*]}`, `{.nested[0]}`,
	`{.items[?(@.kind=="Pod")].metadata.name}`, `{.items[?(@.kind == 'Pod')].metadata.name}`, `{.items[?(@.kind!="Pod")].metadata.name}`, `{.items[?(@.spec.replicas>1)].metadata.name}`,
	`{.items[?(@.spec.replicas<=2)].metadata.name}`, `{.items[?(@.spec.replicas>=2)].metadata.name}`, `{.items[?(@.spec.replicas<2)].metadata.name}`, `{.items[?(@.status.ready==true)].metadata.name}`, `{.items[?(@.status.ready!=false)].metadata.name}`,
	`{.items[?(@.status.ready<true)].kind}`, `{.items[?(@.spec.nodeName)].metadata.name}`, `{.items[?(@.spec.nodeName=="n1")].metadata.name}`, `{.items[?(@.spec.missing)].kind}`, `{.items[?(@.spec.missing=="x")].kind}`, `{.items[?(@.kind>"Pod")].kind}`,
	`{.items[?(@.spec.replicas=="1")].kind}`, `{.items[?(@.spec=="1")].kind}`, `{.items[?("Pod"==@.kind)].metadata.name}`, `{.items[?(@.metadata.labels.app==@.spec.containers[0].name)].metadata.name}`,
	`{.items[*].status.conditions[?(@.type=="Ready")].status}`, `{.items[?(@.status.conditions[*].type=="Ready")].kind}`, `{.items[?(@.metadata.labels.example\.com/tier=="front")].metadata.name}`, `{.items[?(@.metadata.labels['app']=="db")].metadata.name}`,
	`{.numbers[?(@>2)]}`, `{.numbers[?(@ > 2)]}`, `{.numbers[?(@==1)]}`, `{.numbers[?(@)]}`, `{.numbers[?(@=1)]}`, `{.numbers[?(@!1)]}`, `{.numbers[?(@===1)]}`, `{.numbers[?(@>2]}`, `{.numbers[?(@>2)}`, `{.numbers[?(@>)]}`, `{.numbers[?(>2)]}`, `{.numbers[?()]}`, `{.numbers[?(@>"2")]}`, `{.numbers[?(@>none)]}`, `{.kind[?(@.x)]}`, `{.none[?(@.x)]}`, `{.nested[?(@.x)]}`, `{.missing[?(@.x)]}`,
	`{.items[?(@.kind==")")].kind}`, `{.items[?(@.spec.replicas==0x1)].kind}`, `{.items[?(@.spec.replicas==+1)].kind}`,
	`{..name}`, `{..image}`, `{.items[*]..containerPort}`, `{..missing}`, `{..numbers[0]}`, `{....name}`, `{...name}`, `{.. name}`, `{..*}`, `{..[0]}`, `{.nested..}`, `{.matrix..}`, `{.matrix..[0]}`, `{..list[0].name}`,
	`{.nested.*.name}`, `{.nested.*}`, `{.items[*].metadata.*}`, `{.numbers.*}`, `{.count.*}`, `{.*.a.name}`, `{*}`,
	`{range .items[*]}{.metadata.name}{"\n"}{end}`, `{range .items[*]}{.metadata.name}{"\t"}{.spec.nodeName}{"\n"}{end}`, `{range .items[*]}[{.metadata.name}, {.status.phase}] {end}`,
	`{range .items[*]}{.metadata.name}:{range .spec.containers[*]} {.image}{end};{end}done`, `{range .items[?(@.kind=="Pod")]}{.metadata.name} {end}`, `{range .missing}{.x}{end}after`, `{range.items[*]}{.kind}{end}`,
	`{range .numbers[*]}{@},{end}`, `{range .numbers[*]}{$},{end}{.kind}`, `{range .matrix[*]}{[*]}-{end}`, `{range .items[*]}{range .spec.containers[*]}{.name}{end}{end}{.kind}`, `{range .items[*]}{.kind}{ end }`, `{range}{.kind}{end}`, `{range @}{.kind}{end}`, `{range .nested.a}{.name}{end}`,
	`{end}`, `{.kind}{end}`, `{"text"}`, `{'text'}`, `{"a\tb"}`, `{'a\'b'}`, `{"a\"b"}`, `{"\u00e9"}`, `{"\q"}`, `{"open}`, `{"{"}{"}"}`, `{'{.kind}'}`, `{"é"}`, `{"\xff"}`,
	`{`, `{.kind`, `}`, `{.kind}}`, "{.kind\n}", `{.kind .apiVersion}`, `{.items[0] .kind}`, `{[0]}`, `{['kind']}`, `{kind}`, `{foo}`, `{true}`, `{false}`, `{1}`, `{-1}`, `{1.5}`, `{+2}`, `{1.2.3}`, `{-}`, `{1e3}`, `{.kind "x"}`, `{.numbers[*] 7}`, `{.items[0}`, `{.items[}`, `{.items]}`, `{,}`, `{.kind,.count}`, `{(.kind)}`, `{:}`, `{.a{.b}}`, `{.count}{.missing}`, `é{.kind}é`, `{.numbers[*][0]}`,
}

// jsonpathDifferences are templates whose result differs on purpose: the package's documentation says why.
var jsonpathDifferences = map[string]string{
	`{range .empty[*]}{.x}{end}after`:                 "after",
	`{range .items[*]}{.kind}`:                        "error",
	`{.items[?(@.spec.replicas>1.5)].metadata.name}`:  "web-1 db",
	`{.items[?(@.spec.replicas==2.0)].kind}`:          "Pod",
	`{"a\\"}`:                                         `a\`,
	`{.text.*}`:                                       "",
	`{.lists[*][*]}`:                                  "1 2",
	`{.lists[*][0:]}`:                                 "1 2",
	`{.matrix[*][1:]}`:                                "2 5",
	`{.items[?(@.spec.containers[1])].metadata.name}`: "web-0",
	`{range .none}{@}{end}`:                           "null",
	`{.items[?(@['a=b'])].kind}`:                      "",
}

func runOurJSONPath(text string, data any, allowMissing bool) (string, error) {
	template, err := ours.Parse(text, &ours.Options{AllowMissingKeys: allowMissing})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = template.Execute(&out, data)
	return out.String(), err
}

func runTheirJSONPath(text string, data any, allowMissing bool) (string, error) {
	template := theirs.New("test").AllowMissingKeys(allowMissing)
	if err := template.Parse(text); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := template.Execute(&out, data)
	return out.String(), err
}

// sortedWords makes the results of maps comparable, whose order is random in client-go.
func sortedWords(text string) string {
	words := strings.Split(text, " ")
	sort.Strings(words)
	return strings.Join(words, " ")
}

func TestJSONPath_EqualsClientGo(t *testing.T) {
	data := jsonpathObject(t)
	for _, text := range jsonpathCases {
		for _, allowMissing := range []bool{false, true} {
			t.Run(text, func(t *testing.T) {
				got, err := runOurJSONPath(text, data, allowMissing)
				want, wantErr := runTheirJSONPath(text, data, allowMissing)
				require.Equal(t, wantErr == nil, err == nil, "allow missing keys: %v\nours: %q %v\ntheirs: %q %v", allowMissing, got, err, want, wantErr)
				if err == nil {
					if strings.Contains(text, "*") || strings.Contains(text, "..") {
						got = sortedWords(got)
						want = sortedWords(want)
					}
					assert.Equal(t, want, got, "allow missing keys: %v", allowMissing)
				}
			})
		}
	}
}

func jsonpathObject(t *testing.T) any {
	var data map[string]any
	decoder := json.NewDecoder(strings.NewReader(jsonpathData))
	require.NoError(t, decoder.Decode(&data))
	return integers(data)
}

// integers makes whole numbers int64, as decoders of Kubernetes objects do.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = integers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func TestJSONPath_DocumentedDifferences(t *testing.T) {
	data := jsonpathObject(t)
	for text, want := range jsonpathDifferences {
		t.Run(text, func(t *testing.T) {
			got, err := runOurJSONPath(text, data, !strings.Contains(text, ".empty"))
			if want == "error" {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				assert.Equal(t, want, got)
			}
			theirs, theirErr := runTheirJSONPath(text, data, !strings.Contains(text, ".empty"))
			assert.False(t, theirs == got && (theirErr == nil) == (err == nil), "no difference: %q %v", theirs, theirErr)
		})
	}
}

// TestJSONPath_EqualsKubectl prints objects of a real server by templates, as kubectl get does.
func TestJSONPath_EqualsKubectl(t *testing.T) {
	namespaces := client.Resource(t, client.Connect(t, ""), "namespaces")
	page, err := namespaces.ListPage(t.Context(), nil)
	require.NoError(t, err)
	items := make([]any, len(page.Items))
	for i, item := range page.Items {
		items[i] = item.Object
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}
	for _, text := range []string{
		`{.items[*].metadata.name}`, `{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}`, `{.items[?(@.metadata.name=="default")].metadata.uid}`,
		`{.items[0].metadata.labels}`, `{.items[0].metadata.labels.kubernetes\.io/metadata\.name}`, `{.items[-1:].spec}`, `{.kind} {.missing}`, `{..name}`, `{@}`, `{.items[0,1].metadata.name}`,
		`{.items[99].metadata.name}`, `{.items[?(@.metadata.name=1)]}`, `{.items`, `{end}`,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := runOurJSONPath(text, list, true)
			want, wantErr := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "get", "namespaces", "-o", "jsonpath="+text).Output()
			require.Equal(t, wantErr == nil, err == nil, "ours: %q %v, kubectl's: %q %v", got, err, want, wantErr)
			if err == nil {
				if strings.Contains(text, "..") {
					assert.Equal(t, sortedWords(string(want)), sortedWords(got))
				} else {
					assert.Equal(t, string(want), got)
				}
			}
		})
	}
}
