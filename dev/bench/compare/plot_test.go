//go:build unix

package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func half() result {
	return result{comparison{name: "a<b", aim: 0.4, ours: cost{figure: "wall"}, theirs: cost{figure: "wall"}}, 0.001, 0.002}
}

func TestResult_String(t *testing.T) {
	assert.Equal(t, "bench a<b ratio=0.500 ours=1.000ms theirs=2.000ms", half().String())
	for figure, want := range map[string]string{
		"get-alloc": "ours=2.5kB", "heap": "ours=2.5kB", "size": "ours=2.5kB", "cpu": "ours=2500000.000ms", "allocs": "ours=2500", "packages": "ours=2500",
		"sync-peak": "ours=2.5kB", "held": "ours=2.5kB", "event-cpu": "ours=2500000000.000µs", "lookup-wall": "µs", "event-delay-99": "ours=2500000.000ms",
	} {
		r := result{comparison{ours: cost{figure: figure}}, 2500, 5000}
		assert.Contains(t, r.String(), want, figure)
	}
}

func TestResult_Shown(t *testing.T) {
	r := half()
	assert.Equal(t, "0.50", r.shown())
	r.oursCost = 0.00001
	assert.Equal(t, "0.005", r.shown())
	changes := run{"ours", "cache-minute", 500}
	r = result{comparison{ours: cost{changes, "event-wall"}, theirs: cost{changes, "event-wall"}}, 0.5, 1}
	assert.Equal(t, "1000/s and 500/s", r.shown())
}

func TestResult_Missed(t *testing.T) {
	r := half()
	assert.True(t, r.missed())
	r.aim = 0.5
	assert.False(t, r.missed())
}

func TestPlot_IsXMLAndCutsBars(t *testing.T) {
	long := half()
	long.name = "long"
	long.oursCost = 1
	drawn := string(ratioPlot([]result{half(), long}))
	decoder := xml.NewDecoder(strings.NewReader(drawn))
	for {
		_, err := decoder.Token()
		if err == io.EOF { //nolint:errorlint // Token's own
			break
		}
		require.NoError(t, err)
	}
	assert.Contains(t, drawn, ">a&lt;b<")
	assert.Contains(t, drawn, `width="150.0"`) // half of 1.6 is 150 of 480
	assert.Contains(t, drawn, `width="480.0"`)
	assert.Contains(t, drawn, ">500.00<")
}
