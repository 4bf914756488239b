package builtin

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Default sets the defaults of a decoded object. As in the API server, defaults belong to a Go type and apply to each of its
// values: a pod's defaults apply to the templates of all workloads.
func Default(kind schema.GroupVersionKind, obj map[string]any) {
	table := goTypes()
	if typ, ok := table.kinds[kind]; ok {
		(&defaulter{table, defaultsByType()}).apply(typ, obj)
	}
}

type defaulter struct {
	table  *typeTable
	byType map[string]func(object)
}

func (d *defaulter) apply(typ string, value any) {
	typ = strings.TrimPrefix(typ, "*")
	switch value := value.(type) {
	case []any:
		element, isSlice := strings.CutPrefix(typ, "[]")
		if named, ok := d.table.types[typ]; ok {
			element, isSlice = strings.CutPrefix(named.underlying, "[]")
		}
		for _, item := range value {
			if isSlice {
				d.apply(element, item)
			}
		}
	case object:
		if strings.HasPrefix(typ, "map[") {
			_, element, _ := strings.Cut(typ[4:], "]")
			for _, item := range value {
				d.apply(element, item)
			}
			return
		}
		named, ok := d.table.types[typ]
		if !ok || named.underlying != "struct" || strings.HasPrefix(typ, "meta/v1.") {
			return
		}
		if set := d.byType[typ]; set != nil {
			set(value)
		}
		for i := range named.fields {
			switch item := value[named.fields[i].name].(type) {
			case object, []any:
				d.apply(named.fields[i].typ, item)
			}
		}
	}
}

// defaultsByType caches typeDefaults.
var defaultsByType = sync.OnceValue(typeDefaults)

// typeDefaults returns the defaults by Go type.
func typeDefaults() map[string]func(object) {
	all := map[string]func(object){}
	for _, group := range []map[string]func(object){
		podDefaults(), volumeDefaults(), coreDefaults(), appsDefaults(), batchDefaults(), otherDefaults(), admissionDefaults(), definitionDefaults(),
	} {
		for typ, set := range group {
			all[typ] = set
		}
	}
	return all
}
