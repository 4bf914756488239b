// Command stern prints the logs of all containers in Pods with a matching name, and follows them and later Pods: stern '^web-'
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: stern PATTERN")
	}
	pattern, err := regexp.Compile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		log.Fatal(err)
	}
	opts := &stream.LogOptions{
		Follow: true, Filter: func(source stream.LogSource) bool { return pattern.MatchString(source.Pod) },
		OnError: func(source stream.LogSource, err error) { log.Print(source, ": ", err) },
	}
	for line, err := range stream.LogLines(ctx, pods, opts) {
		if err != nil && ctx.Err() == nil {
			log.Fatal(err)
		} else if err == nil {
			fmt.Println(line)
		}
	}
}
