package com.acme;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReportTest {
    @Test
    void csvIsSortedAndQuoted() {
        var report = new Report<>("Städte", "alle", LocalDate.of(2024, 1, 1), LocalDate.of(2024, 12, 31),
                List.of("Köln;Bonn", "Aachen"), Map.of("name", s -> s), false, ';', 10);
        assertEquals("name\r\nAachen\r\n\"Köln;Bonn\"\r\n", report.toCsv());
    }
}
