"""What the experiments and the benchmarks share: tables by name, one seeded run, facts about the machine, Markdown."""
