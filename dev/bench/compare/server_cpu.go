//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// serverCPU returns the user and system time so far of the kube-apiserver that listens on a port of this machine, in seconds. It is
// 0 without /proc. Its resolution is 10 ms.
func serverCPU(port string) float64 {
	const ticksPerSecond = 100 // USER_HZ of Linux on every platform of Go
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		command, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil || !bytes.Contains(command, []byte("--secure-port="+port+"\x00")) {
			continue // of a different program, or ended
		}
		stat, err := os.ReadFile(filepath.Join(process, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest) // from the third field on: proc(5)
		if err != nil || len(fields) < 13 {
			continue
		}
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		return (user + system) / ticksPerSecond
	}
	return 0
}

// protobufTask is the suffix of tasks of ours with protobuf in place of JSON.
const protobufTask = "-protobuf"

// protobufComparisons compares responses as protobuf with responses as JSON: CPU of the client and of kube-apiserver together, and
// of the client alone.
func protobufComparisons(count int) []comparison {
	var all []comparison
	for _, form := range []struct {
		task, what string
		aim        float64
	}{
		{"list", "List of full objects", 0.65},
		{"whole", "ListPage of full objects", 0.65},
		{"lazy", "List of lazy objects with two fields read", 0.6},
		{"cache", "sync of a cache of full objects", 0.9},
		{"cache-lazy", "sync of a cache of lazy objects", 0.6},
		{"cache-packed", "sync of a cache of packed objects", 1},
		{"cache-metadata-lazy", "sync of a cache of lazy metadata", 0.8},
	} {
		for _, part := range []struct {
			figure, what string
			aim          float64
		}{
			{"both-cpu", "CPU of client and kube-apiserver as protobuf, against JSON", form.aim},
			{"cpu", "CPU of the client alone as protobuf, against JSON", 1},
		} {
			all = append(all, comparison{
				name: fmt.Sprintf("protobuf-%s-%s/%d", form.task, part.figure, count), what: part.what + ": " + form.what, aim: part.aim,
				ours: cost{run{"ours", form.task + protobufTask, count}, part.figure}, theirs: cost{run{"ours", form.task, count}, part.figure},
			})
		}
	}
	return all
}
