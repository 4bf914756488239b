package protobuf_test

import (
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/anykind/anykind/dev/parity/protobuf/table"
)

// message is a generated type.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
	Reset()
}

// kind is a kind of the table.
type kind struct {
	schema.GroupVersionKind
	goType reflect.Type
}

func (k kind) String() string {
	apiVersion, name := k.ToAPIVersionAndKind()
	return strings.ReplaceAll(apiVersion, "/", ".") + "." + name
}

func (k kind) new() message { return reflect.New(k.goType).Interface().(message) }

func kinds(t testing.TB) []kind {
	t.Helper()
	types, err := table.Kinds()
	require.NoError(t, err)
	var all []kind
	for gvk, goType := range types {
		all = append(all, kind{gvk, goType})
	}
	slices.SortFunc(all, func(a, b kind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

var samplesOfJSON = []string{
	`null`, `true`, `1`, `1.0`, `-0`, `1e3`, `"a\u00e9<b>"`, `[]`, `{}`, `[1,{"a":null}]`, `{"f:a":{".":{},"k:{\"b\":1}":{}}}`, ` {"a" : 1, "a": 2} `, ``,
	`123456789012345678901234567890`,
}

// randomObjects fills objects by upstream's functions, with more elements and forms than there.
func randomObjects(seed int64) *randfill.Filler {
	own := func(serializer.CodecFactory) []any {
		depth := 0
		return []any{
			func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(sampleJSON(c)) },
			func(r *apiextensions.JSON, c randfill.Continue) { r.Raw = []byte(sampleJSON(c)) },
			func(e *metav1.ManagedFieldsEntry, c randfill.Continue) {
				c.FillNoCustom(e)
				e.FieldsV1 = nil
				if c.Bool() {
					e.FieldsV1 = metav1.NewFieldsV1(sampleJSON(c))
				}
			},
			func(q *resource.Quantity, c randfill.Continue) {
				formats := []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}
				value := c.Int63() >> c.Intn(63)
				*q = *resource.NewScaledQuantity(value, resource.Scale(c.Intn(12)-6))
				q.Format = formats[c.Intn(len(formats))]
			},
			func(s *apiextensions.JSONSchemaProps, c randfill.Continue) {
				if depth++; depth < 4 {
					c.FillNoCustom(s)
				}
				depth--
			},
		}
	}
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, own), rand.NewSource(seed), scheme.Codecs).NumElements(0, 2).NilChance(.4)
}

func sampleJSON(c randfill.Continue) string { return samplesOfJSON[c.Intn(len(samplesOfJSON))] }

// asServed sets what the API server sets when it converts an object to its version: the kinds of claims within StatefulSets.
func asServed(obj message) {
	var claims []corev1.PersistentVolumeClaim
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		claims = obj.Spec.VolumeClaimTemplates
	case *appsv1beta1.StatefulSet:
		claims = obj.Spec.VolumeClaimTemplates
	case *appsv1beta2.StatefulSet:
		claims = obj.Spec.VolumeClaimTemplates
	}
	for i := range claims {
		claims[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	}
}

// setKind sets the kind of an object, as the API server does.
func setKind(obj message, gvk schema.GroupVersionKind) {
	obj.(runtime.Object).GetObjectKind().SetGroupVersionKind(gvk)
}

// difference describes the first difference of two decoded values.
func difference(path string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		other, isMap := got.(map[string]any)
		if !isMap {
			break
		}
		names := maps.Clone(want)
		maps.Copy(names, other)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			a, inWant := want[name]
			b, inGot := other[name]
			if inWant != inGot {
				return fmt.Sprintf("%s.%s: want %t %v, got %t %v", path, name, inWant, a, inGot, b)
			}
			if found := difference(path+"."+name, a, b); found != "" {
				return found
			}
		}
		return ""
	case []any:
		other, isList := got.([]any)
		if !isList || len(other) != len(want) {
			break
		}
		for i := range want {
			if found := difference(fmt.Sprintf("%s[%d]", path, i), want[i], other[i]); found != "" {
				return found
			}
		}
		if (want == nil) == (other == nil) {
			return ""
		}
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s: want %T %#v, got %T %#v", path, want, want, got, got)
	}
	return ""
}
