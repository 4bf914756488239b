package main

import (
	"maps"
	"slices"
)

// pool has the repeated values.
type pool struct {
	count  map[string]int
	number map[string]int
	values []string
}

// minPooled is the minimum length of a pooled value.
const minPooled = 48

func newPool(documents map[string]any) *pool {
	p := &pool{count: map[string]int{}, number: map[string]int{}}
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		p.countValues(documents[path])
	}
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		p.replace(documents[path], true)
	}
	return p
}

func (p *pool) countValues(value any) {
	if !isComposite(value) {
		return
	}
	text, _ := compactJSON(value)
	p.count[text]++
	if p.count[text] > 1 {
		return
	}
	forEach(value, p.countValues)
}

// replace returns value with references in place of pooled values.
func (p *pool) replace(value any, whole bool) any {
	if !isComposite(value) {
		return value
	}
	text, _ := compactJSON(value)
	pooled := !whole && p.count[text] > 1 && len(text) >= minPooled
	if number, known := p.number[text]; pooled && known {
		return map[string]any{"&": number}
	}
	var replaced any
	switch value := value.(type) {
	case map[string]any:
		object := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			object[key] = p.replace(value[key], false)
		}
		replaced = object
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = p.replace(item, false)
		}
		replaced = list
	}
	if !pooled {
		return replaced
	}
	short, _ := compactJSON(replaced)
	p.number[text] = len(p.values)
	p.values = append(p.values, short)
	return map[string]any{"&": p.number[text]}
}

func isComposite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func forEach(value any, visit func(any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			visit(value[key])
		}
	case []any:
		for _, item := range value {
			visit(item)
		}
	}
}
