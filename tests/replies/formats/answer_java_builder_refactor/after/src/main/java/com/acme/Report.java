package com.acme;

import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A report over rows of type {@code <T>}.
 *
 * @param <T> the row's type
 */
public final class Report<T extends Comparable<? super T>> {
    private final String title;
    private final String subtitle;
    private final LocalDate from;
    private final LocalDate to;
    private final List<T> rows;
    private final Map<String, Function<T, ?>> columns;
    private final boolean landscape;
    private final char separator;
    private final int limit;

    private Report(Builder<T> b) {
        this.title = b.title;
        this.subtitle = b.subtitle;
        this.from = b.from;
        this.to = b.to;
        this.rows = List.copyOf(b.rows);
        this.columns = Map.copyOf(b.columns);
        this.landscape = b.landscape;
        this.separator = b.separator;
        this.limit = b.limit;
    }

    public static <T extends Comparable<? super T>> Builder<T> builder() {
        return new Builder<>();
    }

    public String toCsv() {
        String head = String.join(String.valueOf(separator), columns.keySet());
        return rows.stream()
                .sorted()
                .limit(limit)
                .map(row -> columns.values().stream()
                        .map(f -> quote(String.valueOf(f.apply(row))))
                        .collect(Collectors.joining(String.valueOf(separator))))
                .collect(Collectors.joining("\r\n", head + "\r\n", "\r\n"));
    }

    private String quote(String cell) {
        return cell.indexOf(separator) < 0 && cell.indexOf('"') < 0
                ? cell
                : '"' + cell.replace("\"", "\"\"") + '"';
    }

    @Override
    public String toString() {
        return """
                Report "%s" (%s)
                  %s \u2013 %s, %d rows%s
                """.formatted(title, subtitle, from, to, rows.size(), landscape ? ", landscape" : "");
    }

    /**
     * Collects the values of a {@link Report} and validates them in {@link #build()}.
     *
     * @param <T> the row's type
     */
    public static final class Builder<T extends Comparable<? super T>> {
        private String title;
        private String subtitle;
        private LocalDate from;
        private LocalDate to;
        private List<T> rows = List.of();
        private Map<String, Function<T, ?>> columns = Map.of();
        private boolean landscape = false;
        private char separator = ';';
        private int limit = Integer.MAX_VALUE;

        private Builder() {}

        public Builder<T> title(String title) {
            this.title = title;
            return this;
        }

        public Builder<T> subtitle(String subtitle) {
            this.subtitle = subtitle;
            return this;
        }

        public Builder<T> period(LocalDate from, LocalDate to) {
            this.from = from;
            this.to = to;
            return this;
        }

        public Builder<T> rows(List<T> rows) {
            this.rows = rows;
            return this;
        }

        public Builder<T> columns(Map<String, Function<T, ?>> columns) {
            this.columns = columns;
            return this;
        }

        public Builder<T> landscape(boolean landscape) {
            this.landscape = landscape;
            return this;
        }

        public Builder<T> separator(char separator) {
            this.separator = separator;
            return this;
        }

        public Builder<T> limit(int limit) {
            this.limit = limit;
            return this;
        }

        public Report<T> build() {
            Objects.requireNonNull(title, "title");
            Objects.requireNonNull(rows, "rows");
            Objects.requireNonNull(columns, "columns");
            if (from != null && to != null && from.isAfter(to)) {
                throw new IllegalArgumentException("from must not be after to: " + from + " > " + to);
            }
            if (columns.isEmpty()) {
                throw new IllegalArgumentException("columns must not be empty");
            }
            if (separator == '"') {
                throw new IllegalArgumentException("separator must not be a quote");
            }
            if (limit < 0) {
                throw new IllegalArgumentException("limit must not be negative: " + limit);
            }
            return new Report<>(this);
        }
    }
}
