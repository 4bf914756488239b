package unstructured

import (
	"errors"
	"io"
	"strconv"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// iterate is Decode as json-iterator's Iterator suggests it, without Decode's strictness.
func iterate(data []byte) (map[string]any, error) {
	it := jsoniter.ConfigDefault.BorrowIterator(data)
	defer jsoniter.ConfigDefault.ReturnIterator(it)
	m, isObject := iterateValue(it).(map[string]any)
	if it.Error != nil && it.Error != io.EOF {
		return nil, it.Error
	}
	if !isObject {
		return nil, errors.New("not an object")
	}
	return m, nil
}

func iterateValue(it *jsoniter.Iterator) any {
	switch it.WhatIsNext() {
	case jsoniter.StringValue:
		return it.ReadString()
	case jsoniter.NumberValue:
		text := string(it.ReadNumber())
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			it.ReportError("number", err.Error())
		}
		return f
	case jsoniter.BoolValue:
		return it.ReadBool()
	case jsoniter.ArrayValue:
		list := []any{}
		it.ReadArrayCB(func(it *jsoniter.Iterator) bool {
			list = append(list, iterateValue(it))
			return it.Error == nil
		})
		return list
	case jsoniter.ObjectValue:
		m := map[string]any{}
		it.ReadMapCB(func(it *jsoniter.Iterator, name string) bool {
			m[name] = iterateValue(it)
			return it.Error == nil
		})
		return m
	default:
		it.Skip()
		return nil
	}
}

// The comparison would be worth nothing if it read something else.
func TestJsoniter_DecodesBenchmarkInput(t *testing.T) {
	for _, file := range []string{"pod.json", "configmap.json", "event.json"} {
		data := sample(t, file)
		want, err := Decode(data)
		require.NoError(t, err)
		got, err := iterate(data)
		require.NoError(t, err)
		assertIdentical(t, want.Object, got)
	}
}

// Why the package does not read with it.
func TestJsoniter_DecodesSomeTextWrongly(t *testing.T) {
	for _, name := range []string{"invalid UTF-8", "names made equal", "high high low"} {
		data := inObject(nastyValues[name])
		want, err := reference(data)
		require.NoError(t, err)
		got, err := iterate(data)
		require.NoError(t, err)
		assert.NotEqual(t, want, got, name)
	}
}
