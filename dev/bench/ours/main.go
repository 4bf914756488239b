//go:build unix

// Command ours runs a task of the comparison with anykind.
package main

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// side is the pods of a namespace, accessed by anykind.
type side struct {
	client   *dynamic.Client
	pods     *dynamic.Resource
	requests *atomic.Int64 // of the task applyset
}

func main() { measure.Main(prepare) }

func prepare(ctx context.Context, s *measure.Settings) (map[string]measure.Task, error) {
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: s.Kubeconfig})
	if err != nil {
		return nil, err
	}
	cfg.DisableCompression = strings.HasSuffix(s.Task, "-plain")
	s.Task, cfg.Protobuf = strings.CutSuffix(s.Task, "-protobuf")
	cfg.MemoryLimits.Page = 8 << 30 // 50,000 pods as maps need more than the default
	requests := &atomic.Int64{}
	if s.Task == "applyset" {
		cfg.OnAttempt = countRequests(requests)
	}
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return nil, err
	}
	ours := &side{client: client, pods: pods.Namespace(s.Namespace), requests: requests}
	if _, err := ours.pods.ListPage(ctx, &metav1.ListOptions{Limit: 1}); err != nil {
		return nil, err
	}
	path, err := ours.pods.Path("")
	if err != nil {
		return nil, err
	}
	least, err := newFloor(cfg, path)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(s.Task, "floor-") {
		if err := least.send(ctx, http.MethodGet, least.pods+"?limit=1", nil); err != nil {
			return nil, err
		}
	}
	return map[string]measure.Task{
		"floor-list": least.list, "floor-whole": least.whole, "floor-calls": least.calls, "floor-event": least.cacheEvent,
		"floor-cache": least.cache, "floor-cache-shared": least.cacheShared, "floor-cache-lazy": least.cacheLazy,
		"floor-stripped": least.cacheStripped, "floor-metadata": least.cacheMetadata, "floor-metadata-shared": least.cacheMetadataShared,
		"floor-metadata-lazy": least.cacheMetadataJSON,
		"list":                ours.list, "whole": ours.whole, "lazy": ours.lazy, "iterate": ours.iterate,
		"drain": ours.drain, "drain-whole": ours.drainWhole,
		"near-list-gzip": ours.list, "near-list-plain": ours.list, "near-whole-gzip": ours.whole, "near-whole-plain": ours.whole,
		"far-list-gzip": ours.list, "far-list-plain": ours.list, "far-whole-gzip": ours.whole, "far-whole-plain": ours.whole,
		"watch": ours.watch, "watch-10": ours.watchLive(10), "watch-100": ours.watchLive(100), "calls": ours.calls,
		"gets": ours.gets, "applies": ours.applies,
		"cache": ours.cache, "cache-lazy": ours.cacheLazy, "cache-packed": ours.cachePacked,
		"cache-stripped": ours.cacheStripped, "cache-stripped-lazy": ours.cacheStrippedLazy, "cache-metadata": ours.cacheMetadata, "cache-metadata-lazy": ours.cacheMetadataLazy, "cache-index": ours.cacheIndex,
		"cache-event": ours.cacheEvent, "cache-event-lazy": ours.cacheEventLazy, "cache-event-packed": ours.cacheEventPacked,
		"cache-minute": ours.cacheEvent,
		"cache-churn":  ours.churn, "cache-churn-lazy": ours.churnLazy, "cache-churn-packed": ours.churnPacked,
		"custom": ours.custom, "custom-lazy": ours.customLazy, "custom-packed": ours.customPacked,
		"applyset": ours.applySet,
		"mixed":    ours.mixed, "mixed-lazy": ours.mixedLazy, "mixed-packed": ours.mixedPacked,
	}, nil
}
