package shard_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/shard"
)

func ExampleSplit() {
	for i, selector := range shard.Split(shard.Namespace, 3) {
		fmt.Println(i, selector)
		for _, namespace := range []string{"db", "web", "prod", "blog"} {
			if selector.Matches(namespace, types.UID("")) {
				fmt.Println("  has", namespace)
			}
		}
	}
	// Output:
	// 0 shardRange(object.metadata.namespace, '0x0000000000000000', '0x5555555555555556')
	//   has db
	// 1 shardRange(object.metadata.namespace, '0x5555555555555556', '0xaaaaaaaaaaaaaaab')
	//   has web
	//   has prod
	// 2 shardRange(object.metadata.namespace, '0xaaaaaaaaaaaaaaab', '0x10000000000000000')
	//   has blog
}

// The selector of a process that takes over the share of a second one.
func ExampleNew() {
	all := shard.Split(shard.UID, 4)
	own := shard.New(shard.UID, all[0].Ranges()...)
	fmt.Println(own.Ranges().Share(), own.Matches("shop", "1b4f"))
	own = own.Union(all[1])
	fmt.Println(own.Ranges().Share())
	fmt.Println(shard.New(shard.UID, shard.All()...).IsEverything(), shard.New(shard.UID).IsNothing())
	// Output:
	// 0.25 false
	// 0.5
	// true true
}
