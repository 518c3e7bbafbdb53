"""Serving of transformers: prefill and decode, requests in flight, latencies and throughput."""
